#include "engine/plugin/loader.h"

#include <algorithm>
#include <set>

#include "engine/base/error.h"
#include "engine/base/guarded.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/device/status.h"
#include "engine/plugin/host.h"
#include "engine/plugin/library.h"
#include "heddle/abi/device.h"

namespace heddle::core {

namespace {

// Plugins of the process by canonical path, in load order.
using Loaded = std::vector<std::pair<std::filesystem::path, std::weak_ptr<const Plugin>>>;
Guarded<Loaded>& loaded() {
  static Guarded<Loaded> plugins;
  return plugins;
}

void check_entry(const heddle_plugin& entry, const std::filesystem::path& path) {
  // Size first: nothing behind it may be read from a smaller record.
  constexpr std::size_t kVersions = offsetof(heddle_plugin, id);
  if (entry.size < kVersions) throw Error(Code::invalid_argument, cat(path.string(), ": its heddle_entry has the impossible size ", entry.size));
  if (entry.abi_major != HEDDLE_ABI_MAJOR || (HEDDLE_ABI_MAJOR == 0 ? entry.abi_minor != HEDDLE_ABI_MINOR : entry.abi_minor > HEDDLE_ABI_MINOR))
    throw Error(Code::unsupported, cat(path.string(), " was built for version ", entry.abi_major, ".", entry.abi_minor, " of the plugin ABI; this engine (heddle ",
                                       kEngineVersion, ") wants version ", HEDDLE_ABI_MAJOR, ".", HEDDLE_ABI_MINOR, ". Build the plugin again with this engine's SDK"));
  if (entry.size < sizeof(heddle_plugin) || entry.id == nullptr || entry.version == nullptr || entry.provide == nullptr)
    throw Error(Code::invalid_argument, cat(path.string(), ": its heddle_entry is incomplete (id, version and provide are needed)"));
}

// The size a desc begins with, whatever it is.
std::uint32_t desc_size(const void* desc) { return *static_cast<const std::uint32_t*>(desc); }

// The first of the required functions that a device kind lacks; "" where it has all.
std::string_view missing_function(const heddle_device_desc& d) {
  const std::pair<std::string_view, bool> functions[] = {
      {"count", d.count != nullptr},
      {"open", d.open != nullptr},
      {"close", d.close != nullptr},
      {"info", d.info != nullptr},
      {"alloc", d.alloc != nullptr},
      {"free", d.free != nullptr},
      {"stream_make", d.stream_make != nullptr},
      {"stream_free", d.stream_free != nullptr},
      {"event_make", d.event_make != nullptr},
      {"event_free", d.event_free != nullptr},
      {"record", d.record != nullptr},
      {"wait_on_stream", d.wait_on_stream != nullptr},
      {"wait", d.wait != nullptr},
      {"done", d.done != nullptr},
      {"can_copy", d.can_copy != nullptr},
      {"copy", d.copy != nullptr},
      {"weight_form", d.weight_form != nullptr},
      {"make_weight", d.make_weight != nullptr},
  };
  for (const auto& [name, is_there] : functions)
    if (!is_there) return name;
  return "";
}

void check_device(const heddle_device_desc& device, const Plugin& plugin) {
  // Size first: what is required stands before the first optional member.
  constexpr std::size_t kRequired = offsetof(heddle_device_desc, kernels);
  if (device.size < kRequired || device.kind == nullptr)
    throw Error(Code::invalid_argument, cat("plugin ", quote(plugin.id()), ": a device kind has no name, or its desc has ", device.size, " bytes; ", kRequired,
                                            " are required. Build the plugin again with this engine's SDK"));
  if (const std::string_view missing = missing_function(device); !missing.empty())
    throw Error(Code::invalid_argument, cat("plugin ", quote(plugin.id()), ": the device kind ", quote(device.kind), " lacks the function ", missing,
                                            ", which every device has"));
}

const heddle_kernel* const* kernels_of(const heddle_device_desc& device) {
  return device.size < offsetof(heddle_device_desc, alloc_pinned) ? nullptr : device.kernels;
}

void add_to(LoadedPlugins& all, const std::shared_ptr<const Plugin>& plugin) {
  for (const void* desc : plugin->provide(HEDDLE_NODES))
    all.catalog->add(std::make_shared<NodeType>(static_cast<const heddle_node_desc*>(desc), plugin->id(), plugin), Catalog::Duplicate::replace);
  for (const void* desc : plugin->provide(HEDDLE_MODELS)) {
    const auto* family = static_cast<const heddle_model_desc*>(desc);
    if (family->size < offsetof(heddle_model_desc, doc) || family->family == nullptr || family->role == nullptr || family->match == nullptr || family->build == nullptr)
      throw Error(Code::invalid_argument, cat("plugin ", quote(plugin->id()), ": a model family lacks its name, role, match or build"));
    all.catalog->add(ModelFamily{family, plugin->id(), plugin});
  }
  for (const void* desc : plugin->provide(HEDDLE_DEVICES)) {
    const auto* device = static_cast<const heddle_device_desc*>(desc);
    check_device(*device, *plugin);
    all.devices.push_back({device, plugin});
    for (const heddle_kernel* const* k = kernels_of(*device); k != nullptr && *k != nullptr; ++k) all.kernels->add(*k, plugin->id(), plugin);
  }
  for (const void* desc : plugin->provide(HEDDLE_KERNELS)) all.kernels->add(static_cast<const heddle_kernel*>(desc), plugin->id(), plugin);
}

std::vector<std::filesystem::path> shared_objects(const std::filesystem::path& folder) {
  if (std::filesystem::is_regular_file(folder)) return {folder};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".so") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

}  // namespace

Plugin::Plugin(const heddle_plugin* entry, std::filesystem::path path)
    : entry_(entry), id_(entry->id), version_(entry->version), path_(std::move(path)) {
  if (entry_->init == nullptr) return;
  heddle_status* status = nullptr;
  try {
    status = entry_->init(plugin_host());
  } catch (const std::exception& error) {
    throw Error(Code::internal, cat(path_.string(), ": init threw ", quote(error.what()), ". A plugin must return a status instead"));
  } catch (...) {
    throw Error(Code::internal, cat(path_.string(), ": init threw an exception. A plugin must return a status instead"));
  }
  if (status != nullptr) {
    const Error error = take_status(status);
    throw Error(error.code(), cat(path_.string(), ": init failed: ", error.what()));
  }
}

Plugin::~Plugin() {
  if (entry_->deinit != nullptr) entry_->deinit();
}

std::vector<const void*> Plugin::provide(const char* kind) const {
  std::vector<const void*> items;
  const heddle_list* list = entry_->provide(kind);
  for (std::uint32_t i = 0; list != nullptr && i < list->count; ++i)
    if (list->items[i] != nullptr && desc_size(list->items[i]) >= sizeof(std::uint32_t)) items.push_back(list->items[i]);
  return items;
}

std::shared_ptr<const Plugin> load_plugin(const std::filesystem::path& path) {
  std::error_code missing;
  const std::filesystem::path canonical = std::filesystem::canonical(path, missing);
  if (missing) throw Error(Code::not_found, cat(path.string(), ": ", missing.message()));
  const auto plugins = loaded().lock();
  for (const auto& [known, plugin] : *plugins)
    if (known == canonical)
      if (auto shared = plugin.lock()) return shared;
  const heddle_plugin* entry = load_entry(canonical);
  check_entry(*entry, canonical);
  auto plugin = std::make_shared<const Plugin>(entry, canonical);
  std::erase_if(*plugins, [&](const auto& p) { return p.first == canonical; });
  plugins->emplace_back(canonical, plugin);
  return plugin;
}

std::vector<Provided> provided_by_all(const char* kind) {
  std::vector<std::shared_ptr<const Plugin>> alive;
  for (const auto& [path, weak] : *loaded().lock())
    if (auto plugin = weak.lock()) alive.push_back(std::move(plugin));
  std::vector<Provided> all;
  for (const auto& plugin : alive)
    for (const void* desc : plugin->provide(kind)) all.push_back({desc, plugin});
  return all;
}

// The kinds that choice widgets ask for, filled with what all plugins provide of them.
void add_choices(LoadedPlugins& all) {
  std::set<std::string_view> kinds;
  for (const std::string_view name : all.catalog->type_names()) {
    const NodeTypeRef type = all.catalog->find(name);
    for (std::uint32_t i = 0; i < type->input_count(); ++i)
      if (const heddle_widget* w = type->input(i).widget; w != nullptr && w->kind == HEDDLE_WIDGET_CHOICE && w->source != nullptr) kinds.insert(w->source);
  }
  for (const std::string_view kind : kinds)
    for (const auto& plugin : all.plugins)
      for (const void* desc : plugin->provide(std::string(kind).c_str())) all.catalog->add(kind, Extension{desc, plugin->id(), plugin});
}

LoadedPlugins load_plugins(const std::vector<std::filesystem::path>& folders) {
  LoadedPlugins all;
  for (const std::filesystem::path& folder : folders) {
    std::vector<std::filesystem::path> files;
    try {
      files = shared_objects(folder);
    } catch (const std::filesystem::filesystem_error& error) {
      all.refused.push_back({folder, cat("the plugin folder cannot be read: ", error.code().message())});
      continue;
    }
    for (const std::filesystem::path& file : files) {
      try {
        const auto plugin = load_plugin(file);
        if (std::ranges::find(all.plugins, plugin) != all.plugins.end()) continue;
        add_to(all, plugin);
        all.plugins.push_back(plugin);
      } catch (const Error& error) {
        all.refused.push_back({file, error.what()});
      }
    }
  }
  add_choices(all);
  std::vector<std::string> names;
  for (const auto& folder : folders) names.push_back(folder.string());
  all.catalog->set_plugin_folders(std::move(names));
  return all;
}

}  // namespace heddle::core
