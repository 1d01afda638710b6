#include "engine/place/call_hints.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/graph/parallel_names.h"
#include "engine/program/workload.h"

namespace heddle::engine {

namespace {

// "embed, double.0 to double.18, single.0 to single.37, final": names with a number are ranges.
std::string names_of_groups(const Graph& graph) {
  struct Range {
    std::string_view stem, first, last;
  };
  std::vector<Range> ranges;
  for (const NodeIndex n : graph.order) {
    const std::string_view group = group_of(graph.nodes[n].id);
    const std::string_view stem = group.substr(0, group.find_last_not_of("0123456789") + 1);
    const auto known = std::ranges::find(ranges, stem, &Range::stem);
    if (known == ranges.end())
      ranges.push_back({stem, group, group});
    else
      known->last = group;
  }
  std::vector<std::string> names;
  for (const Range& r : ranges)
    names.push_back(r.first == r.last ? std::string(r.first) : cat(r.first, " to ", r.last));
  constexpr std::size_t kMost = 12;
  if (names.size() > kMost) {
    names.resize(kMost);
    names.emplace_back("...");
  }
  return join(names, ", ");
}

std::vector<std::uint32_t> of_blocks(const Model& model, const std::vector<BlockHint>& hints,
                                     std::uint32_t home, const Topology& topology) {
  const Graph& graph = *model.graph;
  std::vector<std::uint32_t> of_block(graph.nodes.size(), home);
  std::vector<bool> named(graph.nodes.size(), false);
  std::map<std::string_view, NodeIndex> first_of_group;
  for (const BlockHint& hint : hints) {
    const NamedDevices found = find_devices(hint.device, topology);
    const bool has_home = std::ranges::find(found.devices, home) != found.devices.end();
    const std::uint32_t device = has_home ? home : found.devices.front();
    bool any = false;
    for (const NodeIndex n : graph.order) {
      if (!matches_glob(hint.match, graph.nodes[n].id) &&
          !matches_glob(hint.match, group_of(graph.nodes[n].id)))
        continue;
      any = true;
      if (named[n]) continue;  // an earlier pattern has it
      named[n] = true;
      of_block[n] = device;
    }
    if (!any)
      throw Error(Code::not_found, cat("no block of ", model.family, " matches ", quote(hint.match),
                                       "; there are: ", names_of_groups(graph)));
  }
  for (const NodeIndex n : graph.order) {
    const std::string_view group = group_of(graph.nodes[n].id);
    const NodeIndex first = first_of_group.try_emplace(group, n).first->second;
    if (of_block[first] != of_block[n])
      throw Error(Code::invalid_argument,
                  cat("the blocks ", graph.nodes[first].id, " and ", graph.nodes[n].id,
                      " belong together, but the patterns put them on ",
                      topology.devices[of_block[first]].name, " and ",
                      topology.devices[of_block[n]].name, ": match ", quote(cat(group, "*"))));
  }
  return of_block;
}

// "gpu:1" is the second device with a memory of its own, as ComfyUI counts them, where none is
// called so.
std::string own_name(const std::string& text, const Topology& topology) {
  constexpr std::string_view kGpu = "gpu:";
  const auto is_named = [&](const DeviceFacts& device) { return device.name == text; };
  if (!text.starts_with(kGpu) || std::ranges::any_of(topology.devices, is_named)) return text;
  std::size_t left = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data() + kGpu.size(), end, left);
  if (error != std::errc() || at != end) return text;
  for (const DeviceFacts& device : topology.devices)
    if (!device.host_visible && left-- == 0) return device.name;
  return text;
}

// What there is of the devices that are preferred; nobody is refused for a preference.
std::vector<std::uint32_t> preferred(const std::string& text, const Topology& topology) {
  try {
    return text.empty() ? std::vector<std::uint32_t>()
                        : find_devices(own_name(text, topology), topology).devices;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

ParallelMode read_parallel(std::string_view name) {
  const std::optional<std::string> known = canonical_parallel(name);
  if (!known)
    throw Error(Code::invalid_argument,
                cat("there is no parallel mode ", quote(name), ".", parallel_advice(name)));
  ParallelMode mode = ParallelMode::none;
  for (std::string_view rest = *known; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find('+'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    for (const ParallelMode single : {ParallelMode::layers, ParallelMode::cfg, ParallelMode::data,
                                      ParallelMode::sequence, ParallelMode::tensor})
      if (part == parallel_name(single)) mode = mode | single;
  }
  return mode;
}

CallWish read_call_hints(const Model& model, const Hints& caller, std::uint32_t home,
                         const Topology& topology) {
  CallWish wish;
  const Hints& loader = model.hints;
  const std::string& mode = loader.parallel.empty() ? caller.parallel : loader.parallel;
  const char* const given_by = loader.parallel.empty() ? "caller" : "loader";
  if (!mode.empty()) {
    wish.parallel = read_parallel(mode);
    wish.reason = cat("parallel mode ", quote(mode), " of the ", given_by);
  }
  if (!loader.device.empty()) {
    const NamedDevices found = find_devices(loader.device, topology);
    wish.devices = found.devices;
    wish.all_devices = found.is_list;
    if (found.is_list && !wish.parallel) wish.parallel = ParallelMode::layers;
    if (wish.reason.empty()) wish.reason = "device of the loader";
  } else if (!caller.device.empty()) {
    // One device is where the caller itself stands; a parallel mode goes on from there.
    const NamedDevices found = find_devices(caller.device, topology);
    if (found.devices.size() > 1 || !wish.parallel || *wish.parallel == ParallelMode::none)
      wish.devices = found.devices;
    wish.all_devices = found.is_list && wish.parallel.has_value();
    if (wish.reason.empty()) wish.reason = "device of the caller";
  } else if (const auto wanted = preferred(loader.prefer, topology);
             !wanted.empty() && !wish.parallel) {
    wish.devices = wanted;
    wish.reason = "preference of the loader";
  }
  const std::vector<BlockHint>& blocks = loader.blocks.empty() ? caller.blocks : loader.blocks;
  if (blocks.empty()) return wish;
  if (wish.parallel && *wish.parallel != ParallelMode::layers && !mode.empty())
    throw Error(Code::invalid_argument,
                cat("parallel mode ", quote(mode),
                    " and places for single blocks contradict each other: leave one of them out"));
  const bool has_home = std::ranges::find(wish.devices, home) != wish.devices.end();
  wish.of_block = of_blocks(
      model, blocks, wish.devices.empty() || has_home ? home : wish.devices.front(), topology);
  wish.parallel = ParallelMode::layers;
  wish.reason = loader.blocks.empty() ? "blocks of the caller" : "blocks of the loader";
  return wish;
}

}  // namespace heddle::engine
