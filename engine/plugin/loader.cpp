#include "engine/plugin/loader.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/base/error.h"
#include "engine/base/folder.h"
#include "engine/base/guarded.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/device/device_desc.h"
#include "engine/device/status.h"
#include "engine/graph/literal.h"
#include "engine/plugin/host.h"
#include "engine/plugin/library.h"
#include "heddle/abi/device.h"

namespace heddle::engine {

namespace {

// Plugins of the process by canonical path, in load order.
using Loaded = std::vector<std::pair<std::filesystem::path, std::weak_ptr<const Plugin>>>;
Guarded<Loaded>& loaded() {
  static Guarded<Loaded> plugins;
  return plugins;
}

// Sizes of the first revision: what is smaller was built against nothing that was ever released.
constexpr std::size_t kFirstEntry = 56;
constexpr std::size_t kFirstModel = 48;
static_assert(sizeof(heddle_plugin) == kFirstEntry && sizeof(heddle_model_desc) == kFirstModel);

void check_entry(const heddle_plugin& entry, const std::filesystem::path& path) {
  // Size first: nothing behind it may be read from a smaller record.
  constexpr std::size_t kVersions = offsetof(heddle_plugin, id);
  if (entry.size < kVersions)
    throw Error(Code::invalid_argument,
                cat(path.string(), ": its heddle_entry has the impossible size ", entry.size));
  if (entry.abi_major != HEDDLE_ABI_MAJOR ||
      (HEDDLE_ABI_MAJOR == 0 ? entry.abi_minor != HEDDLE_ABI_MINOR
                             : entry.abi_minor > HEDDLE_ABI_MINOR))
    throw Error(Code::unsupported,
                cat(path.string(), " was built for version ", entry.abi_major, ".", entry.abi_minor,
                    " of the plugin ABI; this engine (heddle ", kEngineVersion, ") wants version ",
                    HEDDLE_ABI_MAJOR, ".", HEDDLE_ABI_MINOR,
                    ". Build the plugin again with this engine's SDK"));
  if (entry.size < kFirstEntry)
    throw Error(Code::invalid_argument, cat(path.string(), ": its heddle_entry has ", entry.size,
                                            " bytes, the first revision has ", kFirstEntry));
  const auto need = [&](std::string_view member, bool is_there) {
    if (!is_there)
      throw Error(Code::invalid_argument, cat(path.string(), ": its heddle_entry lacks ",
                                              quote(member), ", which every plugin needs"));
  };
  need("id", entry.id != nullptr);
  need("version", entry.version != nullptr);
  need("provide", entry.provide != nullptr);
}

// The size a desc begins with, whatever it is.
std::uint32_t desc_size(const void* desc) { return *static_cast<const std::uint32_t*>(desc); }

void check_model(const heddle_model_desc& model, std::string_view plugin) {
  const auto fail = [&](const std::string& fault) {
    throw Error(Code::invalid_argument, cat("plugin ", quote(plugin), ": ", fault,
                                            ". Build the plugin again with this engine's SDK"));
  };
  if (model.size < kFirstModel)
    fail(cat("the desc of a model family has ", model.size, " bytes, the first revision has ",
             kFirstModel));
  if (model.family == nullptr || *model.family == '\0') fail("a model family has no name");
  const std::string which = cat("the model family ", quote(model.family), " lacks ");
  if (model.role == nullptr) fail(which + "its role");
  if (model.match == nullptr) fail(which + "the function 'match'");
  if (model.build == nullptr) fail(which + "the function 'build'");
}

// Of two things of one name that one plugin brings, the second would quietly stand for the first.
void check_names(std::vector<std::string_view> names, std::string_view what,
                 std::string_view plugin) {
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end())
    throw Error(Code::invalid_argument, cat("plugin ", quote(plugin), " brings the ", what, " ",
                                            quote(*twice), " twice. Rename one of them"));
}

// What a plugin brings, checked.
struct Brought {
  explicit Brought(const std::shared_ptr<const Plugin>& plugin) {
    std::vector<std::string_view> types, kinds;
    for (const void* desc : plugin->provide(HEDDLE_NODES)) {
      nodes.push_back(std::make_shared<NodeType>(static_cast<const heddle_node_desc*>(desc),
                                                 plugin->id(), plugin));
      types.push_back(nodes.back()->name());
    }
    check_names(std::move(types), "node type", plugin->id());
    for (const void* desc : plugin->provide(HEDDLE_MODELS)) {
      models.push_back(static_cast<const heddle_model_desc*>(desc));
      check_model(*models.back(), plugin->id());
    }
    for (const void* desc : plugin->provide(HEDDLE_DEVICES)) {
      devices.push_back(static_cast<const heddle_device_desc*>(desc));
      check_device_desc(*devices.back(), plugin->id());
      kinds.emplace_back(devices.back()->kind);
      for (const heddle_kernel* const* k = devices.back()->kernels; k != nullptr && *k != nullptr;
           ++k)
        kernels.push_back(*k);
    }
    check_names(std::move(kinds), "device kind", plugin->id());
    for (const void* desc : plugin->provide(HEDDLE_KERNELS))
      kernels.push_back(static_cast<const heddle_kernel*>(desc));
    for (const heddle_kernel* kernel : kernels) KernelTable::check(kernel, plugin->id());
  }
  std::vector<std::shared_ptr<NodeType>> nodes;
  std::vector<const heddle_model_desc*> models;
  std::vector<const heddle_device_desc*> devices;
  std::vector<const heddle_kernel*> kernels;
};

// Whose kernels of an op run is decided call by call: a plugin that quietly takes over the work of
// a device would be looked for in vain when its results differ.
void tell_of_shared_ops(const KernelTable& table, const std::vector<const heddle_kernel*>& brought,
                        const std::string& plugin) {
  std::map<std::pair<std::string_view, std::string_view>, const std::string*> others;
  for (const KernelTable::Entry& there : table.all())
    others.try_emplace({there.kernel->device_kind, there.kernel->op}, &there.plugin);
  std::map<std::pair<std::string_view, const std::string*>, std::set<std::string>> shared;
  for (const heddle_kernel* kernel : brought)
    if (const auto other = others.find({kernel->device_kind, kernel->op}); other != others.end())
      shared[{kernel->device_kind, other->second}].emplace(kernel->op);
  for (const auto& [with, ops] : shared)
    log(Level::info, cat("plugin ", quote(plugin), " has kernels for ", with.first,
                         " beside those of plugin ", quote(*with.second), ": ", join(ops, ", "),
                         ". Of each call that one runs it that says it fits better"));
}

void add_brought(LoadedPlugins& all, const std::shared_ptr<const Plugin>& plugin,
                 const Brought& brought) {
  for (const auto& node : brought.nodes) all.catalog->add(node, Catalog::Duplicate::replace);
  for (const heddle_model_desc* model : brought.models)
    all.catalog->add(ModelFamily{model, plugin->id(), plugin});
  for (const heddle_device_desc* device : brought.devices) all.devices.push_back({device, plugin});
  tell_of_shared_ops(*all.kernels, brought.kernels, plugin->id());
  for (const heddle_kernel* kernel : brought.kernels)
    all.kernels->add(kernel, plugin->id(), plugin);
  all.plugins.push_back(plugin);
}

// Whether this file stands for that one: the same plugin from a later folder. Of one folder both
// are used, and so are those of other processes, whose files nobody has asked to replace.
bool stands_for(const Plugin& later, const Plugin& earlier) {
  return later.id() == earlier.id() && later.is_here() && earlier.is_here() &&
         later.path().parent_path() != earlier.path().parent_path();
}

// All of it or nothing: of a plugin that is refused nothing is used, and of an earlier file of the
// same plugin neither, whose families and kernels would stand beside those of the later one.
void add_to(LoadedPlugins& all, const std::shared_ptr<const Plugin>& plugin) {
  const Brought brought(plugin);
  const auto same = std::ranges::find_if(
      all.plugins, [&](const auto& earlier) { return stands_for(*plugin, *earlier); });
  if (same == all.plugins.end()) return add_brought(all, plugin, brought);
  log(Level::info, cat("plugin ", quote(plugin->id()), ": ", plugin->path().string(),
                       " is used instead of ", (*same)->path().string()));
  LoadedPlugins again;
  for (const auto& other : all.plugins)
    if (other == *same)
      add_brought(again, plugin, brought);
    else
      add_brought(again, other, Brought(other));
  again.refused = std::move(all.refused);
  all = std::move(again);
}

// A default that its own input does not take is no reason to refuse a plugin: a workflow that gives
// a value runs. When all choices are there.
void warn_of_defaults(const Catalog& catalog) {
  LiteralReader literals(catalog);
  for (const std::string_view name : catalog.type_names()) {
    const NodeTypeRef type = catalog.find(name);
    for (std::uint32_t i = 0; i < type->input_count(); ++i) {
      const std::optional<Literal>& value = literals.default_of(type->input(i), type->check(i));
      if (const auto* fault = value ? std::get_if<LiteralFault>(&*value) : nullptr)
        log(Level::warning,
            cat("plugin ", quote(type->plugin()), ", node type ", quote(name), ": input ",
                quote(type->input(i).name), " does not take its own default: ", fault->text,
                " A workflow has to give a value"));
    }
  }
}

// `error`: why the folder cannot be read.
std::vector<std::filesystem::path> shared_objects(const std::filesystem::path& folder,
                                                  std::error_code& error) {
  error.clear();
  std::error_code gone;
  if (std::filesystem::is_regular_file(folder, gone)) return {folder};
  std::vector<std::filesystem::path> files;
  for (const FolderEntry& entry : entries_of(folder, error))
    if (entry.path.extension() == ".so") files.push_back(entry.path);
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
    throw Error(Code::internal, cat(path_.string(), ": init threw ", quote(error.what()),
                                    ". A plugin must return a status instead"));
  } catch (...) {
    throw Error(
        Code::internal,
        cat(path_.string(), ": init threw an exception. A plugin must return a status instead"));
  }
  if (status != nullptr) {
    const Error error = take_status(status);
    throw Error(error.code(), cat(path_.string(), ": init failed: ", error.what()));
  }
}

Plugin::Plugin(std::string id, std::string version, std::filesystem::path path, Provide provide)
    : provide_(std::move(provide)),
      id_(std::move(id)),
      version_(std::move(version)),
      path_(std::move(path)) {}

Plugin::~Plugin() {
  if (entry_ != nullptr && entry_->deinit != nullptr) entry_->deinit();
}

std::vector<const void*> Plugin::provide(const char* kind) const {
  if (entry_ == nullptr) return provide_(kind);
  std::vector<const void*> items;
  const heddle_list* list = entry_->provide(kind);
  for (std::uint32_t i = 0; list != nullptr && i < list->count; ++i)
    if (list->items[i] != nullptr && desc_size(list->items[i]) >= sizeof(std::uint32_t))
      items.push_back(list->items[i]);
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

namespace {

// The kinds that choice widgets ask for.
std::set<std::string> choice_kinds(const Catalog& catalog) {
  std::set<std::string> kinds;
  for (const std::string_view name : catalog.type_names()) {
    const NodeTypeRef type = catalog.find(name);
    for (std::uint32_t i = 0; i < type->input_count(); ++i)
      if (const heddle_widget* w = type->input(i).widget;
          w != nullptr && w->kind == HEDDLE_WIDGET_CHOICE && w->source != nullptr)
        kinds.emplace(w->source);
  }
  return kinds;
}

// Filled with what all plugins provide of them.
void add_choices(LoadedPlugins& all) {
  for (const std::string& kind : choice_kinds(*all.catalog))
    for (const auto& plugin : all.plugins)
      for (const void* desc : plugin->provide(kind.c_str()))
        all.catalog->add(kind, Extension{desc, plugin->id(), plugin});
}

// "noise schedules" of "heddle.field.noise_schedules/0"; a kind of somebody else's as it is.
std::string plain_name(const std::string& kind) {
  if (!kind.starts_with("heddle.")) return kind;
  const std::size_t end = std::min(kind.rfind('/'), kind.size());
  std::string name = kind.substr(0, end);
  name.erase(0, name.rfind('.') + 1);
  std::ranges::replace(name, '_', ' ');
  return name;
}

// What a node chooses from has a name behind its size (heddle_widget::source).
std::string_view name_of_choice(const void* item) {
  struct Named {
    std::uint32_t size;
    const char* name;
  };
  const auto* named = static_cast<const Named*>(item);
  return named->size >= sizeof(Named) && named->name != nullptr ? named->name : std::string_view();
}

void add_kernel(const heddle_kernel* kernel, std::map<std::string, std::set<std::string>>& ops) {
  ops[kernel->device_kind].emplace(kernel->op);
}

}  // namespace

std::vector<ProvidedNames> provided_names(const Plugin& plugin, const Catalog& catalog) {
  ProvidedNames nodes{"nodes", {}}, blocks{"blocks", {}}, models{"model families", {}},
      devices{"devices", {}};
  std::map<std::string, std::set<std::string>> ops;
  for (const void* item : plugin.provide(HEDDLE_NODES)) {
    const char* const type = static_cast<const heddle_node_desc*>(item)->type;
    const NodeTypeRef known = catalog.find(type);
    const bool is_block = known != nullptr && known->has(HEDDLE_NODE_BLOCK);
    (is_block ? blocks : nodes).names.emplace_back(type);
  }
  // A family may be there once for each role: as decoder and as encoder.
  for (const void* item : plugin.provide(HEDDLE_MODELS))
    if (const std::string_view family = static_cast<const heddle_model_desc*>(item)->family;
        std::ranges::find(models.names, family) == models.names.end())
      models.names.emplace_back(family);
  for (const void* item : plugin.provide(HEDDLE_DEVICES)) {
    const auto& device = *static_cast<const heddle_device_desc*>(item);
    devices.names.emplace_back(device.kind);
    for (const heddle_kernel* const* k = device.kernels; k != nullptr && *k != nullptr; ++k)
      add_kernel(*k, ops);
  }
  for (const void* item : plugin.provide(HEDDLE_KERNELS))
    add_kernel(static_cast<const heddle_kernel*>(item), ops);
  std::vector<ProvidedNames> all{std::move(nodes), std::move(blocks), std::move(models),
                                 std::move(devices)};
  for (const auto& [kind, names] : ops)
    all.push_back({cat("kernels for ", kind), {names.begin(), names.end()}});
  for (const std::string& kind : choice_kinds(catalog)) {
    all.push_back({plain_name(kind), {}});
    for (const void* item : plugin.provide(kind.c_str()))
      if (const std::string_view name = name_of_choice(item); !name.empty())
        all.back().names.emplace_back(name);
  }
  std::erase_if(all, [](const ProvidedNames& names) { return names.names.empty(); });
  return all;
}

std::vector<std::filesystem::path> plugin_files(const std::vector<std::filesystem::path>& folders) {
  std::vector<std::filesystem::path> files;
  for (const std::filesystem::path& folder : folders) {
    std::error_code ignored;
    for (std::filesystem::path& file : shared_objects(folder, ignored))
      files.push_back(std::move(file));
  }
  return files;
}

LoadedPlugins load_plugins(const std::vector<std::filesystem::path>& folders,
                           const OpenPlugin& open) {
  LoadedPlugins all;
  for (const std::filesystem::path& folder : folders) {
    std::error_code error;
    const std::vector<std::filesystem::path> files = shared_objects(folder, error);
    if (error) {
      all.refused.push_back({folder, cat("the plugin folder cannot be read: ", error.message())});
      continue;
    }
    for (const std::filesystem::path& file : files) {
      try {
        const auto plugin = open ? open(file, *all.catalog) : load_plugin(file);
        if (std::ranges::find(all.plugins, plugin) != all.plugins.end()) continue;
        add_to(all, plugin);
      } catch (const Error& error) {
        all.refused.push_back({file, error.what()});
      }
    }
  }
  add_choices(all);
  warn_of_defaults(*all.catalog);
  std::vector<std::string> names;
  for (const auto& folder : folders) names.push_back(folder.string());
  all.catalog->set_plugin_folders(std::move(names));
  all.catalog->set_host(plugin_host());
  return all;
}

}  // namespace heddle::engine
