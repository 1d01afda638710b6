#include "engine/facade/layout.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/own_folder.h"
#include "engine/resources/comfyui_folder.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;

// graphs/models stands in the source tree above the build folder, or in the folder that an
// installed library or program is in.
std::vector<fs::path> shipped_models() {
  std::vector<fs::path> found;
  std::error_code error;
  for (const fs::path& folder : {engine::library_folder(), engine::program_folder()})
    for (const fs::path& base :
         {folder, folder.parent_path(), folder.parent_path().parent_path()}) {
      const fs::path models = base / "graphs/models";
      if (fs::is_directory(models, error) && std::ranges::find(found, models) == found.end())
        found.push_back(models);
    }
  return found;
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

}  // namespace heddle
