#include "engine/isolate/isolating.h"

#include <algorithm>
#include <map>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/isolate/isolated_plugin.h"
#include "engine/isolate/python_packs.h"

namespace heddle::engine {

namespace {

namespace fs = std::filesystem;

bool is_name_of(const std::string& name, const fs::path& file) {
  std::error_code error;
  return name == file.filename() || name == file.stem() || name == file.string() ||
         (name.find('/') != std::string::npos && fs::equivalent(name, file, error));
}

// All that opening plugins needs, whichever is opened first.
struct Isolating {
  Isolation isolation;
  FolderLayout folders;
  std::shared_ptr<Spawner> spawner = std::make_shared<Spawner>();
  std::vector<fs::path> named;
  std::map<fs::path, std::shared_ptr<IsolatedPlugin>> opened;
};

std::shared_ptr<const Plugin> as_plugin(const std::shared_ptr<IsolatedPlugin>& isolated,
                                        const fs::path& file) {
  return std::make_shared<const Plugin>(
      isolated->id(), isolated->version(), file, [isolated](std::string_view kind) {
        return kind == HEDDLE_NODES ? isolated->nodes() : std::vector<const void*>();
      });
}

// Names that no file has may be ids, which a worker tells.
void find_by_id(Isolating& state, std::vector<std::string> ids,
                const std::vector<fs::path>& files) {
  std::vector<std::string> names;
  for (const fs::path& file : files) names.push_back(file.stem().string());
  const std::string listed = join(names, ", ");
  for (const fs::path& file : files) {
    if (ids.empty()) return;
    if (is_python(file)) continue;  // in a worker anyway
    try {
      auto plugin = std::make_shared<IsolatedPlugin>(file, native_worker(file, state.isolation),
                                                     state.spawner);
      if (std::erase(ids, plugin->id()) > 0) {
        state.named.push_back(file);
        state.opened.emplace(file, std::move(plugin));
      } else {
        names.push_back(plugin->id());
      }
    } catch (const Error&) {  // it is refused when it is loaded here, too, or cannot be isolated
    }
  }
  if (ids.empty()) return;
  throw Error(Code::not_found,
              cat("no plugin ", quote(ids.front()), " can run isolated.",
                  did_you_mean(ids.front(), names), " The plugins are ", listed, "."))
      .at(option_frame("isolation", ids.front()));
}

}  // namespace

OpenPlugin isolating(const Isolation& isolation, const std::vector<fs::path>& files,
                     const FolderLayout& folders) {
  const auto state = std::make_shared<Isolating>();
  state->isolation = isolation;
  state->folders = folders;
  std::vector<std::string> ids;
  for (const std::string& name : isolation.plugins) {
    bool is_file = false;
    for (const fs::path& file : files)
      if (is_name_of(name, file)) {
        state->named.push_back(file);
        is_file = true;
      }
    if (!is_file) ids.push_back(name);
  }
  if (!ids.empty()) find_by_id(*state, std::move(ids), files);
  return [state](const fs::path& file) {
    const bool is_pack = is_python(file);
    if (!is_pack && std::ranges::find(state->named, file) == state->named.end())
      return load_plugin(file);
    std::shared_ptr<IsolatedPlugin>& plugin = state->opened[file];
    if (plugin == nullptr)
      plugin = std::make_shared<IsolatedPlugin>(
          file,
          is_pack ? python_worker(file, state->isolation, state->folders)
                  : native_worker(file, state->isolation),
          state->spawner);
    return as_plugin(plugin, file);
  };
}

}  // namespace heddle::engine
