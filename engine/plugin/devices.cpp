#include "engine/plugin/devices.h"

#include <algorithm>
#include <charconv>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/plugin/host.h"
#include "engine/plugin/ledgers.h"
#include "engine/resources/available_memory.h"

namespace heddle::engine {

namespace {

// A plugin may open more devices than it counts: CPU devices share the cores.
constexpr std::uint32_t kMostDevices = 64;

struct Wanted {
  const DeviceKind* kind;
  std::uint32_t index;
  DeviceIdentity identity;

  const std::string& name() const { return identity.names.name; }
};

// Device kind -> a record.
using KindOptions = std::map<std::string, Value, std::less<>>;

Value options_of(const LoadedPlugins& plugins, const std::string& kind, const std::string& text) {
  if (std::ranges::none_of(plugins.devices,
                           [&](const DeviceKind& k) { return kind == k.desc->kind; })) {
    std::vector<std::string_view> kinds;
    for (const DeviceKind& k : plugins.devices) kinds.push_back(k.desc->kind);
    throw Error(Code::not_found, cat("options are given for devices of the kind ", quote(kind),
                                     ", which no plugin brings.", did_you_mean(kind, kinds),
                                     " There are: ", join(kinds, ", ")));
  }
  const Json json = parse_json(text, cat("options of ", kind));
  if (!json.is_object())
    throw Error(Code::invalid_argument,
                cat("the options of ", kind, " have to be a JSON object, got ", json.describe()));
  return from_json(json);
}

KindOptions read_options(const LoadedPlugins& plugins, const DeviceSelection& selection) {
  KindOptions all;
  for (const auto& [kind, text] : selection.options)
    all[kind] = framed(option_frame("device_options", kind),
                       [&, &kind = kind, &text = text] { return options_of(plugins, kind, text); });
  return all;
}

// How many devices a kind has when it is named without a number: what its options say, else its
// plugin.
std::uint32_t count_of(const DeviceKind& kind, const KindOptions& options) {
  const auto found = options.find(std::string_view(kind.desc->kind));
  const Value* count =
      found == options.end() ? nullptr : std::get<Record>(found->second->content).find("count");
  const auto* number = count == nullptr ? nullptr : std::get_if<std::int64_t>(&(*count)->content);
  return number == nullptr || *number < 0 || *number > kMostDevices ? kind.desc->count()
                                                                    : std::uint32_t(*number);
}

std::string nothing_was_loaded(const LoadedPlugins& plugins) {
  return cat("no device plugin was loaded; looked in ",
             join(plugins.catalog->plugin_folders(), ", "),
             ". Name the folder of the plugins with --plugins (EngineOptions::plugin_dirs)");
}

std::string available(const LoadedPlugins& plugins) {
  std::vector<std::string> names;
  for (const DeviceKind& kind : plugins.devices)
    for (std::uint32_t i = 0; i < kind.desc->count(); ++i)
      names.push_back(cat(kind.desc->kind, ":", i));
  return names.empty() ? cat("none: ", nothing_was_loaded(plugins)) : join(names, ", ");
}

bool is_host(const DeviceKind& kind) { return std::string_view(kind.desc->kind) == "cpu"; }

class Selector {
 public:
  Selector(const LoadedPlugins& plugins, const KindOptions& options)
      : plugins_(plugins), options_(options) {}

  void add_named(const std::string& name) {
    if (name == kAnyDevice) return add_best();
    const std::size_t colon = name.find(':');
    const auto kind = std::ranges::find_if(plugins_.devices, [&](const DeviceKind& k) {
      return name.substr(0, colon) == k.desc->kind;
    });
    const bool is_known = kind != plugins_.devices.end();
    const std::uint32_t count = is_known ? count_of(*kind, options_) : 0;
    std::uint32_t index = 0;
    if (is_known && colon == std::string::npos) {
      for (std::uint32_t i = 0; i < count; ++i) add(*kind, i);
      if (count > 0) return;
    } else if (is_known) {
      const char* const end = name.data() + name.size();
      const auto [stop, error] = std::from_chars(name.data() + colon + 1, end, index);
      // Whether the plugin opens it, it says itself.
      if (error == std::errc() && stop == end && index < std::max(kMostDevices, count))
        return add(*kind, index);
    } else if (add_identified(name)) {
      return;
    }
    throw Error(Code::not_found,
                cat("there is no device ", quote(name), "; there are: ", available(plugins_)));
  }

  // A GPU of its own before one that is part of the processor, and that before the processor.
  void add_best() {
    std::vector<Wanted> discrete, integrated, host;
    for (const DeviceKind& kind : plugins_.devices)
      for (std::uint32_t i = 0; i < count_of(kind, options_); ++i) {
        Wanted device{&kind, i, identify(*kind.desc, i, plugin_host())};
        std::vector<Wanted>& with = is_host(kind)                ? host
                                    : device.identity.integrated ? integrated
                                                                 : discrete;
        if (with.empty() || with.front().kind == &kind) with.push_back(std::move(device));
      }
    for (std::vector<Wanted>* best : {&discrete, &integrated, &host})
      if (!best->empty()) {
        for (Wanted& device : *best) add(std::move(device));
        return;
      }
    throw Error(Code::not_found, cat("there is no device: ", nothing_was_loaded(plugins_)));
  }

  std::vector<Wanted> take() { return std::move(wanted_); }

 private:
  void add(const DeviceKind& kind, std::uint32_t index) {
    add({&kind, index, identify(*kind.desc, index, plugin_host())});
  }

  void add(Wanted device) {
    if (std::ranges::any_of(wanted_, [&](const Wanted& w) { return w.name() == device.name(); }))
      log(Level::warning, cat("device ", device.name(), " is named twice; it is used once"));
    else
      wanted_.push_back(std::move(device));
  }

  // By UUID or PCI address.
  bool add_identified(const std::string& name) {
    for (const DeviceKind& kind : plugins_.devices)
      for (std::uint32_t i = 0; i < count_of(kind, options_); ++i) {
        DeviceIdentity identity = identify(*kind.desc, i, plugin_host());
        if (named_by(name, identity.names) != NamedBy::device) continue;
        add({&kind, i, std::move(identity)});
        return true;
      }
    return false;
  }

  const LoadedPlugins& plugins_;
  const KindOptions& options_;
  std::vector<Wanted> wanted_;
};

std::vector<Wanted> select(const LoadedPlugins& plugins, const std::vector<std::string>& names,
                           const KindOptions& options) {
  Selector selector(plugins, options);
  if (names.empty()) selector.add_best();
  for (const std::string& name : names)
    framed(option_frame("devices", name), [&] { selector.add_named(name); });
  return selector.take();
}

std::string compute_of(const DeviceSelection& selection, const DeviceNames& device) {
  const std::string* const found = find_for(selection.compute, device);
  if (found == nullptr) return "";
  if (*found != "f32" && *found != "bf16" && *found != "fp16") {
    const auto by = std::ranges::find_if(selection.compute,
                                         [&](const auto& entry) { return &entry.second == found; });
    throw Error(Code::invalid_argument, cat("compute type ", quote(*found), " for ", by->first,
                                            ": there are f32, bf16 and fp16"))
        .at(option_frame("compute", by->first));
  }
  return *found;
}

// Those that another process loads to open one of the devices.
std::vector<std::string> files_of_devices(const LoadedPlugins& plugins) {
  std::vector<std::string> files;
  for (const auto& plugin : plugins.plugins)
    if (!plugin->provide(HEDDLE_DEVICES).empty() || !plugin->provide(HEDDLE_KERNELS).empty())
      files.push_back(plugin->path().string());
  return files;
}

std::vector<std::string> names_of(const std::vector<Wanted>& wanted) {
  std::vector<std::string> names;
  for (const Wanted& w : wanted) names.push_back(w.name());
  return names;
}

// A plugin names the option that it refuses, and does not know who gave it.
void add_option_frame(Error& error, const DeviceSelection& selection, const Wanted& wanted) {
  const std::string kind = wanted.kind->desc->kind;
  const std::string_view what = error.what();
  const auto is_about = [&](std::string_view option) {
    return what.find(quote(option)) != std::string_view::npos;
  };
  const std::string* const compute = find_for(selection.compute, wanted.identity.names);
  const auto by = std::ranges::find_if(selection.compute,
                                       [&](const auto& entry) { return &entry.second == compute; });
  if (selection.options.contains(kind))
    error.at(option_frame("device_options", kind));
  else if (is_about("threads") && selection.threads > 0)
    error.at(option_frame("threads"));
  else if (is_about("attention_dtype") && !selection.attention_dtype.empty())
    error.at(option_frame("attention_dtype"));
  else if (is_about("linear_dtype") && !selection.linear_dtype.empty())
    error.at(option_frame("linear_dtype"));
  else if (is_about("compute") && compute != nullptr)
    error.at(option_frame("compute", by->first));
}

}  // namespace

std::vector<RunDevice> open_devices(const LoadedPlugins& plugins,
                                    const DeviceSelection& selection) {
  const KindOptions kind_options = read_options(plugins, selection);
  const std::vector<Wanted> wanted = select(plugins, selection.names, kind_options);
  for (const auto& [name, type] : selection.compute)
    if (std::ranges::none_of(wanted, [&name = name](const Wanted& w) {
          return named_by(name, w.identity.names) != NamedBy::nothing;
        }))
      throw Error(Code::not_found,
                  cat("a compute type is given for ", quote(name),
                      ", which is not among the devices used: ", join(names_of(wanted), ", ")))
          .at(option_frame("compute", name));
  const std::vector<std::string> device_plugins = files_of_devices(plugins);
  std::map<const DeviceKind*, std::int64_t> opened_of, wanted_of;
  for (const Wanted& w : wanted) ++wanted_of[w.kind];
  std::vector<std::shared_ptr<const Device>> opened;
  for (const Wanted& w : wanted) {
    std::vector<std::pair<std::string, Value>> options;
    if (const auto own = kind_options.find(std::string_view(w.kind->desc->kind));
        own != kind_options.end())
      options = std::get<Record>(own->second->content).fields;
    // What a kind's own options say counts for more than what is said for all.
    const auto add = [&](const char* key, Value value) {
      if (std::ranges::none_of(options, [&](const auto& field) { return field.first == key; }))
        options.emplace_back(key, std::move(value));
    };
    // Devices that divide something among themselves, as CPU devices divide the cores.
    add("share_index", make_value(opened_of[w.kind]++));
    add("share_count", make_value(wanted_of[w.kind]));
    if (selection.threads > 0) add("threads", make_value(std::int64_t(selection.threads)));
    if (const std::string compute = compute_of(selection, w.identity.names); !compute.empty())
      add("compute", make_value(compute));
    if (selection.reference_kernels) add("kernels", make_value("reference"));
    if (!selection.attention_dtype.empty() && selection.attention_dtype != "default")
      add("attention_dtype", make_value(selection.attention_dtype));
    if (!selection.linear_dtype.empty() && selection.linear_dtype != "default")
      add("linear_dtype", make_value(selection.linear_dtype));
    const Value record = make_record(std::move(options));
    heddle_device* raw = nullptr;
    try {
      throw_status(w.kind->desc->open(plugin_host(), w.index, record.get(), &raw),
                   cat("opening ", w.name()));
    } catch (Error& error) {
      if (error.code() == Code::invalid_argument || error.code() == Code::unsupported)
        add_option_frame(error, selection, w);
      throw;
    }
    opened.push_back(std::make_shared<const Device>(w.identity, *w.kind->desc, raw, w.kind->plugin,
                                                    DeviceSource{device_plugins, w.index, record}));
  }
  const std::vector<std::shared_ptr<Ledger>> ledgers = make_ledgers(opened, selection.memory);
  std::vector<RunDevice> devices;
  for (std::size_t d = 0; d < opened.size(); ++d) {
    RunDevice& device = devices.emplace_back();
    device.state = std::make_unique<DeviceState>(opened[d], plugins.kernels, ledgers[d]);
    device.weights = std::make_unique<WeightStore>(*device.state);
    device.health = std::make_unique<DeviceHealth>(selection.health);
  }
  return devices;
}

namespace {

LinkFacts link_between(const Device& device, const Device* peer) {
  const heddle_link link = device.link(peer);
  const auto kind = link.kind == HEDDLE_LINK_SAME     ? LinkFacts::Kind::same
                    : link.kind == HEDDLE_LINK_PEER   ? LinkFacts::Kind::peer
                    : link.kind == HEDDLE_LINK_DIRECT ? LinkFacts::Kind::direct
                                                      : LinkFacts::Kind::through_host;
  return {kind, link.bytes_per_second, link.latency_seconds};
}

}  // namespace

Topology topology_of(const std::vector<RunDevice>& devices) {
  Topology topology;
  const auto device = [&](std::size_t i) -> const Device* {
    return i < devices.size() ? &devices[i].state->device() : nullptr;
  };
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const Device& d = *device(i);
    const heddle_device_info& info = d.opening_info();
    const std::uint64_t budget = devices[i].state->ledger().budget();
    topology.devices.push_back({d.name(),
                                d.kind(),
                                d.model(),
                                d.host_visible(),
                                d.compute(),
                                info.memory_total,
                                info.memory_free,
                                budget == Ledger::kNoLimit ? 0 : budget,
                                info.flops_per_second,
                                info.bytes_per_second,
                                {},
                                d.has_pinned() && !d.host_visible(),
                                d.names().uuid,
                                d.names().pci_address,
                                d.captures_other_streams()});
  }
  update_available(topology, devices);
  for (std::size_t from = 0; from <= devices.size(); ++from)
    for (std::size_t to = 0; to <= devices.size(); ++to) {
      if (from == to) topology.links.push_back({LinkFacts::Kind::same, 0, 0});
      // Host memory says nothing of itself, and a device that memory is shared with knows as much
      // as its peer.
      else if (device(from) == nullptr || (device(to) != nullptr && device(from)->host_visible()))
        topology.links.push_back(link_between(*device(to), device(from)));
      else
        topology.links.push_back(link_between(*device(from), device(to)));
    }
  return topology;
}

}  // namespace heddle::engine
