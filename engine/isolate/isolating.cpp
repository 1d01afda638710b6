#include "engine/isolate/isolating.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/device/sharing.h"
#include "engine/isolate/isolated_plugin.h"
#include "engine/isolate/python_packs.h"
#include "heddle/abi/front_end.h"

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
  std::set<std::string> packs;  // ids
};

std::string class_of(const void* node) { return static_cast<const heddle_node_desc*>(node)->type; }

std::shared_ptr<const Plugin> as_plugin(const std::shared_ptr<IsolatedPlugin>& isolated,
                                        const fs::path& file, std::vector<const void*> nodes) {
  return std::make_shared<const Plugin>(
      isolated->id(), isolated->version(), file,
      [isolated, nodes = std::move(nodes)](std::string_view kind) {
        return kind == HEDDLE_NODES ? nodes : std::vector<const void*>();
      });
}

// A pack's own node with the name of a plugin's is left out, as in ComfyUI, which keeps its own:
// workflows that were made without the pack mean the plugin's. `so_far` has nothing of plugins that
// were refused, so that a pack can stand in for one.
std::vector<const void*> new_nodes(const Isolating& state, const IsolatedPlugin& pack,
                                   const Catalog& so_far) {
  std::vector<const void*> nodes = pack.nodes();
  std::erase_if(nodes, [&](const void* node) {
    const NodeTypeRef known = so_far.find(class_of(node));
    const bool is_known = known != nullptr && !state.packs.contains(known->plugin());
    if (is_known)
      log(Level::warning,
          cat("the pack ", quote(pack.id()), " brings the node type ", quote(class_of(node)),
              ", which a plugin has already; the plugin's is used. Give the pack's another name."));
    return is_known;
  });
  return nodes;
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
  return [state](const fs::path& file, const Catalog& so_far) {
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
    if (!is_pack) return as_plugin(plugin, file, plugin->nodes());
    std::vector<const void*> nodes = new_nodes(*state, *plugin, so_far);
    state->packs.insert(plugin->id());
    return as_plugin(plugin, file, std::move(nodes));
  };
}

static_assert((kNodeMayUseDevices & (HEDDLE_NODE_INTERMEDIATE_OUTPUT | HEDDLE_NODE_DEV_ONLY)) == 0);

void place_isolated_nodes(const Catalog& catalog, const std::vector<RunDevice>& devices) {
  std::vector<NodeTypeRef> types;
  for (const std::string_view name : catalog.type_names())
    if (NodeTypeRef type = catalog.find(name); type->has(kNodeMayUseDevices))
      types.push_back(std::move(type));
  // Before any device is asked: a driver takes its time, and memory of the card, to answer.
  if (types.empty() || devices.empty()) return;
  // A node placed on another would find no ops, and have all its values brought there, and back.
  for (const RunDevice& device : devices)
    if (!can_share(device.state->device())) return;
  // The catalogue is not in use yet, and nothing that it has was made const.
  for (const NodeTypeRef& type : types)
    const_cast<heddle_node_desc&>(type->desc()).flags &= ~std::uint32_t{HEDDLE_NODE_HOST};
}

}  // namespace heddle::engine
