// Finds plugins, checks that they were built for this engine, initialises them, and puts what they
// bring into a catalogue. A plugin that cannot be used is refused with a reason; the others go on.
// Loading is for one thread at a time.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device/kernel_table.h"
#include "engine/graph/catalog.h"

namespace heddle::engine {

// An initialised plugin. deinit() runs when the last holder is gone: node types, devices and
// kernels hold it.
class Plugin {
 public:
  Plugin(const heddle_plugin* entry, std::filesystem::path path);
  // One that is not in this process: `provide` gives what stands for it here.
  using Provide = std::function<std::vector<const void*>(std::string_view kind)>;
  Plugin(std::string id, std::string version, std::filesystem::path path, Provide provide);
  Plugin(const Plugin&) = delete;
  ~Plugin();
  const std::string& id() const { return id_; }
  const std::string& version() const { return version_; }
  const std::filesystem::path& path() const { return path_; }
  bool is_here() const { return entry_ != nullptr; }  // in this process
  // Empty when it has nothing of the kind.
  std::vector<const void*> provide(const char* kind) const;

 private:
  const heddle_plugin* entry_ = nullptr;
  Provide provide_;  // where there is no entry
  std::string id_, version_;
  std::filesystem::path path_;
};

// Loads one file, or shares it when the process has it already. Throws invalid_argument or
// unsupported: not a plugin, another ABI (both versions are named), init failed or threw.
std::shared_ptr<const Plugin> load_plugin(const std::filesystem::path& path);

struct Provided {
  const void* desc = nullptr;
  std::shared_ptr<const Plugin> plugin;
};
// What all plugins loaded in the process provide of a kind, in load order.
std::vector<Provided> provided_by_all(const char* kind);

struct RefusedPlugin {
  std::filesystem::path path;
  std::string reason;
};

struct DeviceKind {
  const heddle_device_desc* desc = nullptr;
  std::shared_ptr<const Plugin> plugin;
};

struct LoadedPlugins {
  std::vector<std::shared_ptr<const Plugin>> plugins;
  std::vector<RefusedPlugin> refused;
  std::shared_ptr<Catalog> catalog = std::make_shared<Catalog>();
  std::shared_ptr<KernelTable> kernels = std::make_shared<KernelTable>();
  std::vector<DeviceKind> devices;
};

// What a plugin has of one kind, by name: "nodes" and their types, ...
struct ProvidedNames {
  std::string kind;
  std::vector<std::string> names;
};
// All that it has of the kinds that the engine knows, or that a node of the catalogue chooses from.
std::vector<ProvidedNames> provided_names(const Plugin& plugin, const Catalog& catalog);

// Loads every *.so of the folders, in the order of the folders and of the names in them; a path may
// also be one file. A plugin of a later folder replaces one of the same id of an earlier one, and
// its node types replace those of the same name of others. A folder that does not exist is refused
// like a plugin. `open` loads a file, and is shown what the plugins before it have brought, without
// those that were refused; none: load_plugin() does it here.
using OpenPlugin = std::function<std::shared_ptr<const Plugin>(const std::filesystem::path& file,
                                                               const Catalog& so_far)>;
LoadedPlugins load_plugins(const std::vector<std::filesystem::path>& folders,
                           const OpenPlugin& open = nullptr);

// The files that it would load, in its order, but those of folders that cannot be read.
std::vector<std::filesystem::path> plugin_files(const std::vector<std::filesystem::path>& folders);

}  // namespace heddle::engine
