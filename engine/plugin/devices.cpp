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
  std::string name;
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

// Kinds with a GPU come before the host's own processor.
const DeviceKind* best_kind(const LoadedPlugins& plugins) {
  const DeviceKind* best = nullptr;
  for (const DeviceKind& kind : plugins.devices)
    if (kind.desc->count() > 0 && (best == nullptr || std::string_view(best->desc->kind) == "cpu"))
      best = &kind;
  return best;
}

std::vector<Wanted> select(const LoadedPlugins& plugins, const std::vector<std::string>& names,
                           const KindOptions& options) {
  std::vector<Wanted> wanted;
  const auto add = [&](const DeviceKind& kind, std::uint32_t index) {
    const std::string name = cat(kind.desc->kind, ":", index);
    if (std::ranges::any_of(wanted, [&](const Wanted& w) { return w.name == name; }))
      log(Level::warning, cat("device ", name, " is named twice; it is used once"));
    else
      wanted.push_back({&kind, index, name});
  };
  if (names.empty()) {
    const DeviceKind* kind = best_kind(plugins);
    if (kind == nullptr)
      throw Error(Code::not_found, cat("there is no device: ", nothing_was_loaded(plugins)));
    for (std::uint32_t i = 0; i < count_of(*kind, options); ++i) add(*kind, i);
    return wanted;
  }
  const auto add_named = [&](const std::string& name) {
    const std::size_t colon = name.find(':');
    const std::string kind_name = name.substr(0, colon);
    const auto kind = std::ranges::find_if(
        plugins.devices, [&](const DeviceKind& k) { return kind_name == k.desc->kind; });
    const std::uint32_t count = kind == plugins.devices.end() ? 0 : count_of(*kind, options);
    std::uint32_t index = 0;
    if (kind != plugins.devices.end() && colon == std::string::npos) {
      for (std::uint32_t i = 0; i < count; ++i) add(*kind, i);
      if (count > 0) return;
    } else if (kind != plugins.devices.end()) {
      const char* const end = name.data() + name.size();
      const auto [stop, error] = std::from_chars(name.data() + colon + 1, end, index);
      // Whether the plugin opens it, it says itself.
      if (error == std::errc() && stop == end && index < std::max(kMostDevices, count))
        return add(*kind, index);
    }
    throw Error(Code::not_found,
                cat("there is no device ", quote(name), "; there are: ", available(plugins)));
  };
  for (const std::string& name : names)
    framed(option_frame("devices", name), [&] { add_named(name); });
  return wanted;
}

std::string compute_of(const DeviceSelection& selection, const std::string& name,
                       const std::string& kind) {
  auto found = selection.compute.find(name);
  if (found == selection.compute.end()) found = selection.compute.find(kind);
  if (found == selection.compute.end()) return "";
  if (found->second != "f32" && found->second != "bf16" && found->second != "fp16")
    throw Error(Code::invalid_argument, cat("compute type ", quote(found->second), " for ",
                                            found->first, ": there are f32, bf16 and fp16"))
        .at(option_frame("compute", found->first));
  return found->second;
}

std::vector<std::string> names_of(const std::vector<Wanted>& wanted) {
  std::vector<std::string> names;
  for (const Wanted& w : wanted) names.push_back(w.name);
  return names;
}

// A plugin names the option that it refuses, and does not know who gave it.
void add_option_frame(Error& error, const DeviceSelection& selection, const Wanted& wanted) {
  const std::string kind = wanted.kind->desc->kind;
  const std::string_view what = error.what();
  const auto is_about = [&](std::string_view option) {
    return what.find(quote(option)) != std::string_view::npos;
  };
  const std::string& compute_key = selection.compute.contains(wanted.name) ? wanted.name : kind;
  if (selection.options.contains(kind))
    error.at(option_frame("device_options", kind));
  else if (is_about("threads") && selection.threads > 0)
    error.at(option_frame("threads"));
  else if (is_about("compute") && selection.compute.contains(compute_key))
    error.at(option_frame("compute", compute_key));
}

}  // namespace

std::vector<RunDevice> open_devices(const LoadedPlugins& plugins,
                                    const DeviceSelection& selection) {
  const KindOptions kind_options = read_options(plugins, selection);
  const std::vector<Wanted> wanted = select(plugins, selection.names, kind_options);
  for (const auto& [name, type] : selection.compute)
    if (std::ranges::none_of(wanted, [&name = name](const Wanted& w) {
          return w.name == name || name == w.kind->desc->kind;
        }))
      throw Error(Code::not_found,
                  cat("a compute type is given for ", quote(name),
                      ", which is not among the devices used: ", join(names_of(wanted), ", ")))
          .at(option_frame("compute", name));
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
    if (const std::string compute = compute_of(selection, w.name, w.kind->desc->kind);
        !compute.empty())
      add("compute", make_value(compute));
    if (selection.reference_kernels) add("kernels", make_value("reference"));
    const Value record = make_record(std::move(options));
    heddle_device* raw = nullptr;
    try {
      throw_status(w.kind->desc->open(plugin_host(), w.index, record.get(), &raw),
                   cat("opening ", w.name));
    } catch (Error& error) {
      if (error.code() == Code::invalid_argument || error.code() == Code::unsupported)
        add_option_frame(error, selection, w);
      throw;
    }
    opened.push_back(std::make_shared<const Device>(w.name, *w.kind->desc, raw, w.kind->plugin));
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
                                d.has_pinned() && !d.host_visible()});
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
