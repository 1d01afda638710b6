#include "engine/facade/layout.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/base/own_folder.h"
#include "engine/resources/comfyui_folder.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;

// The engine's own folder: the library's where there is one, and the program's.
std::vector<fs::path> own_folders() {
  const fs::path library = engine::library_folder(), program = engine::program_folder();
  return program == library ? std::vector{library} : std::vector{library, program};
}

// graphs/models stands in the source tree above the build folder; what is installed is in bin/,
// lib/ or a folder of the latter, and the graphs in share/heddle/ beside these.
std::vector<fs::path> shipped_models() {
  std::vector<fs::path> found;
  std::error_code error;
  const auto add = [&](const fs::path& models) {
    if (fs::is_directory(models, error) && std::ranges::find(found, models) == found.end())
      found.push_back(models);
  };
  for (const fs::path& folder : own_folders()) {
    const fs::path above = folder.parent_path();
    for (const fs::path& base : {above, above.parent_path()})
      add(base / "share/heddle/graphs/models");
    for (const fs::path& base : {folder, above, above.parent_path()}) add(base / "graphs/models");
  }
  return found;
}

// Plugins are in lib/heddle/plugins of the prefix whose bin/, lib/, lib64/ or lib/x86_64-linux-gnu/
// we stand in; beside us in a build folder. The first of these that is there; all of them where
// none is, so that whoever misses a plugin learns where it was looked for.
std::vector<fs::path> shipped_plugins() {
  std::vector<fs::path> places;
  for (const fs::path& folder : own_folders()) {
    const fs::path above = folder.parent_path();
    const std::string name = folder.filename();
    if (name == "bin" || name.starts_with("lib")) places.push_back(above / "lib/heddle/plugins");
    if (above.filename() == "lib") places.push_back(above / "heddle/plugins");
    places.push_back(folder / "plugins");
  }
  std::error_code error;
  const auto found = std::ranges::find_if(
      places, [&](const fs::path& place) { return fs::is_directory(place, error); });
  if (found != places.end()) return {*found};
  return places;
}

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// Those of the user, who need not have any.
void add_user_plugins(std::vector<fs::path>& folders) {
  fs::path data = environment("XDG_DATA_HOME");
  // By its specification a relative path counts as none.
  if (!data.is_absolute() && !environment("HOME").empty())
    data = fs::path(environment("HOME")) / ".local/share";
  if (!data.is_absolute()) return;
  std::error_code error;
  if (fs::is_directory(data / "heddle/plugins", error)) folders.push_back(data / "heddle/plugins");
}

void add_plugin_path(std::vector<fs::path>& folders) {
  for (std::string_view rest = environment("HEDDLE_PLUGIN_PATH"); !rest.empty();) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    if (end > 0) folders.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

}  // namespace

engine::FolderLayout own_layout_of(const EngineOptions& options) {
  engine::FolderLayout layout{.models = {}, .input = "input", .output = "output"};
  if (!options.comfyui_dir.empty())
    layout = engine::framed(engine::option_frame("comfyui_dir"), [&] {
      return engine::read_comfyui_folder(options.comfyui_dir).layout;
    });
  std::vector<engine::ModelPlace> models;
  for (const fs::path& named : options.model_dirs) models.push_back({named});
  models.insert(models.end(), layout.models.begin(), layout.models.end());
  layout.models = std::move(models);
  if (!options.input_dir.empty()) layout.input = options.input_dir;
  if (!options.output_dir.empty()) {
    layout.output = options.output_dir;
    layout.temp.clear();
  }
  return layout;
}

engine::FolderLayout layout_of(const EngineOptions& options) {
  engine::FolderLayout layout = own_layout_of(options);
  for (const fs::path& shipped : shipped_models()) layout.models.push_back({shipped});
  return layout;
}

std::vector<fs::path> plugin_folders(const EngineOptions& options) {
  std::vector<fs::path> folders;
  if (options.default_plugin_dir.empty()) {
    folders = shipped_plugins();
    add_user_plugins(folders);
    add_plugin_path(folders);
  } else {
    folders = {options.default_plugin_dir};
  }
  folders.insert(folders.end(), options.plugin_dirs.begin(), options.plugin_dirs.end());
  return folders;
}

}  // namespace heddle
