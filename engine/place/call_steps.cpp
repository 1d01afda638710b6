#include "engine/place/call_steps.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/graph/model.h"
#include "engine/program/weight_slot.h"
#include "engine/program/workload.h"
#include "engine/tensor/call.h"
#include "engine/tensor/shape.h"

namespace heddle::core {

namespace {

// A member's part of a weight.
heddle_tensor_info member_info(heddle_tensor_info info, const WeightShard& shard,
                               const std::vector<double>& shares, std::uint32_t member) {
  if (shard.axis < 0) return info;
  std::int64_t length = 0;
  for (const WeightShard::Segment& segment : shard.segments)
    length += divide(segment.length / segment.unit, shares)[member] * segment.unit;
  info.shape[shard.axis] = length;
  std::fill(std::begin(info.stride), std::end(info.stride), 0);
  return checked_info(info, "weight");
}

// The placement's devices, then home when it is none of them.
std::vector<std::uint32_t> places_of(const CallPlacement& placement, std::uint32_t home) {
  std::vector<std::uint32_t> devices = placement.devices;
  if (std::ranges::find(devices, home) == devices.end()) devices.push_back(home);
  return devices;
}

std::string value_name(const Graph& graph, const Source& source) {
  if (source.node == kGraphInputs) return graph.inputs[source.port].name;
  const Node& node = graph.nodes[source.node];
  return node.type->output_count() == 1 ? node.id
                                        : cat(node.id, ".", node.type->output(source.port).name);
}

void tell(const Graph& graph, const SessionPlan& session, const std::vector<std::uint32_t>& devices,
          PlacedCall& call) {
  std::set<std::uint32_t> exchanged;
  std::map<std::string, CallExchange> exchanges;
  std::map<std::string, std::set<NodeIndex>> blocks;
  for (const PlannedCollective& collective : session.collectives) {
    const std::string_view op = op_name(collective.op);
    const std::string name(op.substr(0, op.find('/')));
    CallExchange& exchange = exchanges[name];
    exchange.op = name;
    ++exchange.count;
    blocks[name].insert(collective.node);
    for (const std::uint32_t t : collective.transfers)
      if (exchanged.insert(t).second) exchange.bytes += session.transfers[t].bytes;
  }
  for (auto& [name, exchange] : exchanges) {
    exchange.blocks = std::uint32_t(blocks[name].size());
    call.exchanges.push_back(std::move(exchange));
  }
  std::map<std::tuple<bool, std::uint32_t, std::uint32_t>, CallTransfer> sums;
  for (std::size_t phase = 0; phase < session.phases.size(); ++phase)
    for (const SessionAction& action : session.phases[phase]) {
      if (action.kind != SessionAction::Kind::transfer || exchanged.contains(action.index))
        continue;
      const PlannedTransfer& t = session.transfers[action.index];
      CallTransfer& sum = sums[{phase == 2, t.from, t.to}];
      sum.once = phase != 2;
      sum.from = devices[t.from];
      sum.to = devices[t.to];
      sum.bytes += t.bytes;
      ++sum.count;
      const std::string name = value_name(graph, t.value);
      if (std::ranges::find(sum.values, name) == sum.values.end()) sum.values.push_back(name);
    }
  for (auto& [key, sum] : sums) call.transfers.push_back(std::move(sum));
  for (std::uint32_t p = 0; p < devices.size(); ++p) {
    const SessionPlan::Needs& needs = session.needs[p];
    const std::uint64_t ring = session.arenas[p].ring_bytes;
    if (ring > 0)
      call.streams.push_back({devices[p], needs.resident_weights, ring, needs.step_page_bytes,
                              needs.donor_page_bytes, needs.unpinned_page_bytes,
                              needs.once_page_bytes});
  }
}

}  // namespace

SessionSpec session_spec(const CallSpec& call, const CallPlacement& placement, std::uint32_t home,
                         const Prices& prices) {
  const std::vector<std::uint32_t> devices = places_of(placement, home);
  SessionSpec spec{call.sets, call.schedule, call.step_count, {}, 0, placement, {}};
  spec.home = std::uint32_t(std::ranges::find(devices, home) - devices.begin());
  std::vector<heddle_dtype> compute;
  for (std::uint32_t p = 0; p < devices.size(); ++p) {
    const DeviceFacts& device = prices.topology().devices[devices[p]];
    spec.places.push_back({device.name, device.compute, device.host_visible ? 0 : p + 1,
                           session_budget(device), session_rates(prices, devices[p])});
    compute.push_back(device.compute);
  }
  tell_peers(spec, placement.devices.size(), [&](std::uint32_t a, std::uint32_t b) {
    return prices.link(devices[a], devices[b]).kind == LinkFacts::Kind::peer;
  });
  for (std::uint32_t d = 0; d < prices.topology().devices.size(); ++d)
    if (auto donor = session_donor(prices, d, devices, room_of(prices.topology().devices[d])))
      spec.donors.push_back(std::move(*donor));
  const std::shared_ptr<const Model> model = get_model(*call.model);
  spec.has_factors = model->patches != nullptr;
  spec.is_narrow = is_narrow(*model);
  spec.weight = [model, shares = placement.shares, compute](
                    std::uint32_t place, NodeIndex n, std::uint32_t number, std::uint32_t member) {
    const Node& node = model->graph->nodes[n];
    auto info = weight_info(*model, node, number, compute[place]);
    const WeightSlot slot = weight_slot(node, number);
    if (!info || member == kWholeWeight || slot.slot >= node.shards.size()) return info;
    // Of the factors one is divided: that with the axis along which the matrix is.
    const WeightShard& shard = node.shards[slot.slot];
    const bool is_whole =
        slot.piece != WeightPiece::whole && shard.axis != (slot.piece == WeightPiece::up ? 0 : 1);
    return is_whole ? info : std::optional(member_info(*info, shard, shares, member));
  };
  spec.pinned_bytes = prices.topology().pinned_bytes;
  spec.file_bytes = [model](NodeIndex n, std::uint32_t number, std::uint32_t member) {
    return member == kWholeWeight ? file_bytes(*model, model->graph->nodes[n], number) : 0;
  };
  return spec;
}

std::uint64_t session_budget(const DeviceFacts& device) {
  return has_limit(device) ? room_of(device) : kNoLimit;
}

std::optional<SessionSpec::Donor> session_donor(const Prices& prices, std::uint32_t device,
                                                const std::vector<std::uint32_t>& places,
                                                std::uint64_t free_bytes) {
  const Topology& topology = prices.topology();
  const DeviceFacts& facts = topology.devices[device];
  if (std::ranges::find(places, device) != places.end()) return {};
  if (facts.host_visible || !facts.left_out.empty() || !has_limit(facts)) return {};
  SessionSpec::Donor donor{facts.name, free_bytes / 2, {}, {}};
  bool any = false;
  for (const std::uint32_t place : places) {
    const DeviceFacts& to = topology.devices[place];
    const LinkFacts link = prices.link(device, place);
    const bool direct = link.is_direct() && to.kind == facts.kind &&
                        to.model == facts.model && to.compute == facts.compute;
    donor.seconds_per_byte.push_back(direct ? 1 / link.bytes_per_second : 0);
    donor.latency_seconds.push_back(link.latency_seconds);
    any = any || direct;
  }
  return any ? std::optional(std::move(donor)) : std::nullopt;
}

SessionSpec::Rates session_rates(const Prices& prices, std::uint32_t device) {
  constexpr double kMany = 1e12;  // so that latencies do not count
  SessionSpec::Rates rates;
  rates.seconds_per_flop = prices.seconds(device, kMany, 0, 0) / kMany;
  rates.seconds_per_byte = prices.seconds(device, 0, kMany, 0) / kMany;
  rates.attention_seconds_per_flop =
      (prices.seconds(device, {OpKind::attention, kMany, 0}) - prices.seconds(device, 0, 0, 1)) /
      kMany;
  rates.narrow_seconds_per_flop =
      (prices.seconds(device, {OpKind::narrow, kMany, 0}) - prices.seconds(device, 0, 0, 1)) /
      kMany;
  rates.launch_seconds = prices.seconds(device, 0, 0, 1);
  rates.copy_latency_seconds = prices.transfer_seconds(kHostSide, device, 0);
  rates.copy_seconds_per_byte =
      prices.transfer_seconds(kHostSide, device, std::uint64_t(kMany)) / kMany;
  const LinkFacts link = prices.pinned_link(device);
  if (prices.topology().devices[device].pins && link.bytes_per_second > 0) {
    rates.pinned_seconds_per_byte = 1 / link.bytes_per_second;
    rates.pinned_latency_seconds = link.latency_seconds;
  }
  return rates;
}

void tell_calls(const Inferred& inferred, const Prices& prices, Plan& plan) {
  for (NodeIndex n = 0; n < plan.places.size(); ++n) {
    Assignment& place = plan.places[n];
    for (std::size_t c = 0; c < place.calls.size(); ++c) {
      PlacedCall& call = place.calls[c];
      const std::vector<std::uint32_t> devices = places_of(call.placement, place.device);
      if (!call.told || c >= inferred.nodes[n].calls.size()) continue;
      if (devices.size() < 2 && !call.streamed) continue;
      try {
        const SessionSpec spec =
            session_spec(inferred.nodes[n].calls[c], call.placement, place.device, prices);
        const SessionPlan session =
            plan_session(*call.of->graph, spec,
                         [](std::uint32_t, const heddle_op_call&) { return ChosenKernel(); });
        tell(*call.of->graph, session, devices, call);
      } catch (const Error& error) {
        log(Level::debug,
            cat("what crosses in a call of ", call.model, " cannot be told: ", error.full()));
      }
    }
  }
}

}  // namespace heddle::core
