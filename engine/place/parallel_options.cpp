#include "engine/place/parallel_options.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/place/call_hints.h"
#include "engine/place/call_ways.h"
#include "engine/place/device_choice.h"
#include "engine/place/node_values.h"
#include "engine/place/place_call.h"

namespace heddle::engine {

namespace {

// The devices of a call's placement decide its home when the node itself may be anywhere.
std::optional<std::vector<std::uint32_t>> wished_homes(const std::vector<CallSpec>& calls,
                                                       const Hints& caller,
                                                       const Topology& topology) {
  std::vector<std::uint32_t> homes;
  for (const CallSpec& call : calls) {
    const CallWish wish = read_call_hints(*get_model(*call.model), caller, 0, topology);
    for (const auto* list : {&wish.devices, &wish.of_block})
      for (const std::uint32_t d : *list)
        if (topology.devices[d].left_out.empty() && std::ranges::find(homes, d) == homes.end())
          homes.push_back(d);
  }
  if (homes.empty()) return {};
  return homes;
}

bool asks_for_split(const std::vector<CallSpec>& calls, const Hints& caller,
                    const Topology& topology) {
  return std::ranges::any_of(calls, [&](const CallSpec& call) {
    const auto mode = read_call_hints(*get_model(*call.model), caller, 0, topology).parallel;
    return mode && *mode != ParallelMode::none;
  });
}

bool streams(const NodeOption& option) {
  return std::ranges::any_of(option.assignment.calls, &PlacedCall::streamed);
}

// Home first, then the others.
std::vector<std::uint32_t> beside(std::uint32_t home,
                                  const std::vector<std::uint32_t>& candidates) {
  std::vector<std::uint32_t> devices{home};
  for (const std::uint32_t d : candidates)
    if (d != home) devices.push_back(d);
  return devices;
}

bool says_something(const Hints& hints) {
  return !hints.device.empty() || !hints.parallel.empty() || !hints.blocks.empty() ||
         !hints.prefer.empty();
}

// The same choice, with a word on those that other devices would have made possible.
bool explains_more(const NodeOption& a, const NodeOption& b) {
  return a.assignment.devices == b.assignment.devices &&
         std::ranges::any_of(a.assignment.calls, [](const PlacedCall& call) {
           return !call.report.why.empty() || call.report.rounding;
         });
}

// What more devices would have made possible is said of those that are taken, too.
void tell_of_others(const NodeOption& sharded, NodeOption& alone) {
  alone.assignment.undivided = sharded.assignment.undivided;
  for (std::size_t c = 0; c < alone.assignment.calls.size(); ++c)
    alone.assignment.calls[c].report.rounding = sharded.assignment.calls[c].report.rounding;
}

void add_models(const Value& value, bool all, std::vector<CallSpec>& calls) {
  if (!value) return;
  if (const auto* model = std::get_if<std::shared_ptr<const Model>>(&value->content)) {
    if (all || says_something((*model)->hints)) calls.push_back({value, {}, {}, 1});
  } else if (const auto* list = std::get_if<List>(&value->content)) {
    for (const Value& item : list->items) add_models(item, all, calls);
  } else if (const auto* record = std::get_if<Record>(&value->content)) {
    for (const auto& [name, inner] : record->fields) add_models(inner, all, calls);
  }
}

}  // namespace

const std::vector<CallSpec>& Options::calls_of(NodeIndex n) {
  const NodeSpec& spec = request_.inferred.nodes[n];
  if (!spec.calls.empty()) return spec.calls;
  if (unknown_of_[n] == nullptr) unknown_of_[n] = find_unknown(n);
  return *unknown_of_[n];
}

const std::vector<CallSpec>* Options::find_unknown(NodeIndex n) {
  const Node& node = request_.graph.nodes[n];
  if (node.type->has(HEDDLE_NODE_HOST) || node.type->has(HEDDLE_NODE_DESCRIBES)) return &no_calls_;
  std::vector<CallSpec> calls;
  for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
    const auto* link = std::get_if<Source>(&node.inputs[i]);
    if (link == nullptr || (node.type->input(i).flags & HEDDLE_PORT_PASS) != 0) continue;
    add_models(request_.inferred.nodes[link->node].outputs[link->port].value,
               !node.hints.parallel.empty(), calls);
  }
  return calls.empty() ? &no_calls_ : &unknown_.emplace_back(std::move(calls));
}

Options::Homes Options::homes_of(NodeIndex n, const std::vector<std::uint32_t>& candidates) {
  const Node& node = request_.graph.nodes[n];
  Homes homes;
  if (!node.hints.device.empty()) {
    const NamedDevices found = framed(
        node.hints.device_from, [&] { return find_devices(node.hints.device, request_.topology); });
    if (!warned_[n])
      for (const std::string& name : found.repeated)
        warnings_.push_back(
            cat(request_.graph.name_of(n), ": device ", name, " is named twice; it is used once"));
    warned_[n] = true;
    return {found.devices, "hint of the node", ""};
  }
  if (!node.hints.prefer.empty()) {
    try {
      return {find_devices(node.hints.prefer, request_.topology).devices, "preference of the node",
              ""};
    } catch (const Error& error) {
      homes.regret = cat("; the preferred ", node.hints.prefer,
                         error.code() == Code::io ? " is left out" : " is not there");
    }
  }
  if (const auto wished = wished_homes(calls_of(n), node.hints, request_.topology))
    return {*wished, "where its model is asked for", ""};
  homes.devices = candidates;
  // Beside other runs the large ones are left to those that need them, where all else is equal.
  if (is_beside_others(request_.device_load))
    std::ranges::stable_sort(homes.devices, {}, [&](std::uint32_t d) {
      return usable_bytes(request_.topology.devices[d]);
    });
  return homes;
}

std::vector<std::shared_ptr<const CallLoad>> Options::loads_of(NodeIndex n, std::size_t call) {
  std::vector<std::shared_ptr<const CallLoad>> loads;
  auto& known = loads_[{n, call}];
  const CallSpec& spec = calls_of(n)[call];
  if (spec.sets.empty()) return {};
  for (const DeviceFacts& device : request_.topology.devices) {
    auto found = known.find(device.compute);
    if (found == known.end()) {
      std::shared_ptr<const CallLoad> load;
      try {
        load = request_.load_of ? request_.load_of(spec, device.compute)
                                : std::make_shared<const CallLoad>(
                                      call_load(*get_model(*spec.model), spec, device.compute));
      } catch (const Error& error) {
        // The run has the true shapes, and fails there where it is a fault.
        const std::string refusal =
            cat(request_.graph.name_of(n), ": its model refuses what is planned: ", error.full());
        if (std::ranges::find(warnings_, refusal) == warnings_.end()) warnings_.push_back(refusal);
      }
      found = known.emplace(device.compute, std::move(load)).first;
    }
    if (found->second == nullptr) return {};
    loads.push_back(found->second);
  }
  return loads;
}

std::uint32_t Options::load_number(const Model& model, const CallPlacement& placement) {
  std::string key = cat(hex(model.identity), parallel_name(placement.parallel), ":",
                        join(placement.devices, ","));
  if (has(placement.parallel, ParallelMode::layers)) key += cat(":", join(placement.of_block, ","));
  return loads_seen_.try_emplace(std::move(key), std::uint32_t(loads_seen_.size())).first->second;
}

// Of the weights that the placement needs, all devices together.
double Options::resident_share(const Model& model, const CallPlacement& placement,
                               const std::vector<std::shared_ptr<const CallLoad>>& loads) const {
  const auto& resident = request_.device_load.resident;
  if (resident.empty() || loads.empty() || placement.devices.empty()) return 0;
  double there = 0, wanted = 0;
  for (const std::uint32_t d : placement.devices) {
    const auto found = resident[d].find(model.identity);
    if (found != resident[d].end()) there += double(found->second);
    wanted += double(loads[d]->weight_bytes) / double(placement.ranks());
  }
  return wanted > 0 ? std::min(1.0, there / wanted) : 0;
}

// REQUIRES: the seconds are those of a load from nothing.
void Options::add_loads(const PlacedCall& placed,
                        const std::vector<std::shared_ptr<const CallLoad>>& loads,
                        const Model& model, NodeOption& option) {
  if (placed.load_seconds <= 0 || loads.empty()) return;
  for (const std::uint32_t d : placed.placement.devices)
    option.planned_loads.push_back(
        {model.identity, d, placed.streamed ? 0 : loads[d]->weight_bytes / placed.placement.ranks(),
         placed.load_seconds});
}

PlacedCall Options::placed_alone(NodeIndex n, std::size_t call, std::uint32_t device) {
  const CallSpec& spec = calls_of(n)[call];
  PlacedCall placed = place_call({*get_model(*spec.model),
                                  {},
                                  device,
                                  {device},
                                  prices_,
                                  loads_of(n, call),
                                  0,
                                  false,
                                  request_.fidelity});
  placed.of = get_model(*spec.model);
  return placed;
}

NodeOption Options::option(NodeIndex n, std::uint32_t home,
                           const std::vector<std::uint32_t>& candidates,
                           const std::string& reason) {
  const Node& node = request_.graph.nodes[n];
  const NodeSpec& spec = request_.inferred.nodes[n];
  NodeOption result{{home, {home}, false, reason, {}}, {home, {}, 0, {}}, true};
  if (spec.flops > 0 || spec.bytes > 0)
    result.task.seconds = prices_.rates(home).seconds({OpKind::other, spec.flops, spec.bytes});
  const std::vector<CallSpec>& calls = calls_of(n);
  std::vector<Hash128> models;  // those that differ: the same one stays where it is
  for (const CallSpec& call : calls)
    if (const Hash128 model = get_model(*call.model)->identity;
        std::ranges::find(models, model) == models.end())
      models.push_back(model);
  for (std::size_t c = 0; c < calls.size(); ++c) {
    const Model& model = *get_model(*calls[c].model);
    const auto turn = std::ranges::find(models, model.identity) - models.begin();
    PlacedCall placed = place_call({model, node.hints, home, candidates, prices_, loads_of(n, c),
                                    std::uint32_t(turn), models.size() > 1, request_.fidelity});
    placed.of = get_model(*calls[c].model);
    placed.known = !spec.calls.empty();
    result.assignment.calls.push_back(std::move(placed));
  }
  place_in_stages(n, home, candidates, result.assignment);
  for (std::size_t c = 0; c < calls.size(); ++c) {
    const Model& model = *get_model(*calls[c].model);
    PlacedCall& placed = result.assignment.calls[c];
    add_loads(placed, loads_of(n, c), model, result);
    placed.load_seconds *= 1 - resident_share(model, placed.placement, loads_of(n, c));
    result.fits = result.fits && placed.fits;
    if (!result.assignment.stages) result.task.seconds += placed.seconds;
    if (placed.load_seconds > 0) {
      result.task.loads.emplace_back(load_number(model, placed.placement),
                                     placed.compared_load_seconds);
      result.load_seconds.push_back(placed.load_seconds);
    }
    for (const std::uint32_t d : placed.placement.devices)
      if (std::ranges::find(result.assignment.devices, d) == result.assignment.devices.end())
        result.assignment.devices.push_back(d);
  }
  if (result.assignment.stages) result.task.seconds += result.assignment.stages->seconds;
  result.task.devices = result.assignment.devices;
  return result;
}

std::vector<NodeOption> Options::of(NodeIndex n, const std::vector<std::uint32_t>& candidates) {
  const Node& node = request_.graph.nodes[n];
  const NodeSpec& spec = request_.inferred.nodes[n];
  try {
    if (!node.hints.parallel.empty())
      framed(node.hints.parallel_from, [&] { return read_parallel(node.hints.parallel); });
    const Homes homes = homes_of(n, candidates);
    if (node.type->has(HEDDLE_NODE_HOST)) {
      NodeOption host{{homes.devices.front(), {homes.devices.front()}, true, "host-only", {}},
                      {kHostSide, {}, 0, {}},
                      true};
      host.task.seconds =
          prices_.rates(kHostSide).computing_seconds({OpKind::other, spec.flops, spec.bytes});
      return {host};
    }
    std::vector<NodeOption> options;
    const std::string reason = cat(homes.reason, homes.regret);
    const bool is_split = asks_for_split(calls_of(n), node.hints, request_.topology);
    for (const std::uint32_t home : homes.devices) {
      options.push_back(option(
          n, home, is_split ? beside(home, candidates) : std::vector<std::uint32_t>{home}, reason));
      if (calls_of(n).empty() || homes.devices.size() < 2 || is_split) continue;
      if (request_.device_load.among_many && options.back().fits) continue;
      // Divided over several: from the first of the devices that are alike, because the others have
      // nothing to add.
      const auto same = [&](std::uint32_t d) {
        return alike(request_.topology.devices[d], request_.topology.devices[home]);
      };
      if (*std::ranges::find_if(homes.devices, same) != home) continue;
      NodeOption sharded = option(n, home, homes.devices, reason);
      tell_of_others(sharded, options.back());
      if (sharded.assignment.devices.size() > 1)
        options.push_back(std::move(sharded));
      else if (explains_more(sharded, options.back()))
        options.back() = std::move(sharded);
    }
    // Of equals, one that leaves donors and links to others.
    if (is_beside_others(request_.device_load) && reason.empty())
      std::ranges::stable_sort(options, {}, streams);
    return options;
  } catch (Error& error) {
    error.at(request_.graph.name_of(n));
    throw;
  }
}

}  // namespace heddle::engine
