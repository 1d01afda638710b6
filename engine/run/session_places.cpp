#include "engine/run/session_places.h"

#include <algorithm>

#include "engine/plan/call_steps.h"
#include "engine/plan/place_call.h"
#include "engine/run/health.h"
#include "engine/run/room.h"

namespace heddle::core {

namespace {

// A plan made without the shapes may have guessed another number of sets.
bool suits(const CallPlacement& placement, const Model& model, const CallSpec& call) {
  switch (placement.split) {
    case Split::layers: return placement.of_block.size() == model.graph->nodes.size();
    case Split::sets: return placement.of_set.size() == call.sets.size();
    default: return !placement.devices.empty();
  }
}

// Weights lie in host memory while they are read for devices that compute there, too: in what the budgets of those leave
// of the host's, and where they leave nothing, in a part of theirs. The bytes for each of them.
std::uint64_t kept_for_reading(const Environment& environment, const Model& model) {
  if (environment.host_weights == nullptr || environment.host_ledger->budget() == Ledger::kNoLimit) return 0;
  std::uint64_t largest = 0, shares = 0, count = 0;
  if (model.checkpoint == nullptr) return 0;
  for (const TensorView& tensor : model.checkpoint->tensors()) largest = std::max<std::uint64_t>(largest, tensor.data.size());
  const std::uint64_t budget = environment.host_ledger->budget();
  for (const RunDevice& device : environment.devices) {
    const Ledger& ledger = device.state->ledger();
    if (ledger.parent() == nullptr) continue;
    shares += std::min(ledger.budget(), budget);
    ++count;
  }
  if (count == 0) return 0;
  // One that is made into its form, two that are read ahead, one that goes; with pages at their ends that belong to others, too.
  const std::uint64_t one = largest + 2 * page_bytes(), wanted = std::max(one, std::min(4 * one, budget / 4)), left = budget - std::min(budget, shares);
  return (wanted - std::min(wanted, left)) / count;
}

// What a session may use of a device: what is left when all has gone that nobody uses, and what of its model others use already.
// `planned`: what the workflow allows itself there; 0: all that there is.
std::uint64_t budget_of(Environment& environment, std::uint32_t d, const Model& model, std::uint64_t planned) {
  const RunDevice& device = environment.devices[d];
  Ledger& ledger = device.state->ledger();
  if (planned == 0 && ledger.budget() == Ledger::kNoLimit && (device.state->device().host_visible() || device.state->device().opening_info().memory_total == 0)) return kNoLimit;
  // Others take and free memory as they like: here it counts what is there now, not two seconds ago.
  for (Ledger* each = &ledger; each != nullptr; each = each->parent()) each->poll_now();
  std::uint64_t most = ledger.most();
  if (ledger.parent() != nullptr) most -= std::min(most, kept_for_reading(environment, model));
  if (planned != 0) most = std::min(planned, most);
  const LedgerReport now = ledger.report();
  std::uint64_t stays = now.reserved;
  for (const LedgerReport::Line& line : now.held) stays += line.kind == Held::weights ? line.pinned : line.bytes;
  stays -= std::min(stays, kept_bytes(environment, d));
  for (const ModelWeights& each : device.weights->models())
    if (each.model == model.identity) stays -= std::min(stays, each.pinned);
  return most - std::min(most, stays);
}

CallPlacement decide(const Environment& environment, const Caller& caller, const Model& model, const CallSpec& call) {
  const Topology topology = topology_now(environment);
  const Prices prices(topology, environment.costs);
  CallRequest request{model, caller.node.hints, caller.place.device, caller.place.devices, prices, {}};
  if (topology.devices.size() > 1) {
    std::map<heddle_dtype, std::shared_ptr<const CallLoad>> loads;
    for (const DeviceFacts& device : topology.devices) {
      auto& load = loads[device.compute];
      if (load == nullptr) load = std::make_shared<const CallLoad>(call_load(model, call, device.compute));
      request.loads.push_back(load);
    }
  }
  return place_call(request).placement;
}

CallPlacement placement_of(Environment& environment, const Caller& caller, const Model& model, const CallSpec& call) {
  const std::uint32_t home = caller.place.device;
  if (environment.place_call) return environment.place_call(caller.node, home, model, call);
  if (environment.devices.size() == 1) return {Split::none, {home}, {}, {}, {}};
  if (caller.number < caller.place.calls.size()) {
    const PlacedCall& planned = caller.place.calls[caller.number];
    // Those of a node that told none stand by model, and were made without shapes: decided anew.
    if (planned.told && suits(planned.placement, model, call)) return planned.placement;
  }
  return decide(environment, caller, model, call);
}

}  // namespace

SessionPlaces session_places(Environment& environment, const Caller& caller, const Model& model, const CallSpec& call) {
  const std::uint32_t home = caller.place.device;
  SessionPlaces places;
  places.placement = placement_of(environment, caller, model, call);
  if (places.placement.devices.empty()) places.placement = {Split::none, {home}, {}, {}, {}};
  std::vector<std::uint32_t> devices = places.placement.devices;
  auto at = std::ranges::find(devices, home);
  if (at == devices.end()) at = devices.insert(at, home);
  places.home = std::uint32_t(at - devices.begin());
  const Prices prices(environment.topology, environment.costs);
  const PlacedCall* const planned = caller.number < caller.place.calls.size() ? &caller.place.calls[caller.number] : nullptr;
  for (const std::uint32_t d : devices) {
    const RunDevice& device = environment.devices[d];
    const std::uint64_t of_workflow = planned == nullptr || d >= planned->budgets.size() ? 0 : planned->budgets[d];
    const std::uint64_t allowed = of_workflow != 0 ? of_workflow : environment.topology.devices[d].budget;
    places.places.push_back({device.state.get(), device.weights.get(), budget_of(environment, d, model, allowed), session_rates(prices, d)});
  }
  const bool streams = std::ranges::any_of(places.places, [](const SessionPlace& p) { return p.budget != kNoLimit; });
  if (!streams || devices.size() == environment.devices.size()) return places;
  const Prices now(topology_now(environment), environment.costs);
  for (std::uint32_t d = 0; d < environment.devices.size(); ++d) {
    const RunDevice& device = environment.devices[d];
    const std::uint64_t used = device.state->memory_use().used, room = room_of(now.topology().devices[d]);
    const std::uint64_t left = std::min(room - std::min(room, used), device.state->ledger().room());
    if (auto offer = session_donor(now, d, devices, left)) places.donors.push_back({std::move(*offer), device.weights.get()});
  }
  return places;
}

}  // namespace heddle::core
