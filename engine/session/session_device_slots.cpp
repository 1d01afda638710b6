#include "engine/session/session_device_slots.h"

#include <algorithm>

#include "engine/place/call_steps.h"
#include "engine/place/place_call.h"
#include "engine/resources/available_memory.h"
#include "engine/resources/device_recovery.h"
#include "engine/session/staging_reserve.h"

namespace heddle::engine {

namespace {

// A plan made without the shapes may have guessed another number of sets.
bool suits(const CallPlacement& placement, const Model& model, const CallSpec& call) {
  if (placement.devices.empty()) return false;
  if (has(placement.parallel, ParallelMode::layers) &&
      placement.of_block.size() != model.graph->nodes.size())
    return false;
  return !has(placement.parallel, ParallelMode::cfg) || placement.of_set.size() == call.sets.size();
}

// What a session may use of a device: what is left when all has gone that nobody uses, and what of
// its model others use already. `planned`: what the workflow allows itself there; 0: all that there
// is.
struct Allowed {
  std::uint64_t budget = kNoLimit, spare = 0;  // as in SessionDeviceSlot
};
enum class Ask { now, at_a_step };
// Two seconds, which is often enough for all else, are a dozen steps and more: a run would be at
// its end before it sees what others have freed. The driver answers in less than a millisecond.
constexpr double kStepPollSeconds = 0.25;
Allowed allowed_on(Environment& environment, std::uint32_t d, const Model& model,
                   std::uint64_t planned, Ask ask = Ask::now) {
  const RunDevice& device = environment.devices[d];
  Ledger& ledger = device.state->ledger();
  if (planned == 0 && ledger.budget() == Ledger::kNoLimit &&
      (device.state->device().host_visible() ||
       device.state->device().opening_info().memory_total == 0))
    return {};
  // Others take and free memory as they like: here it counts what is there now, not two seconds
  // ago.
  if (ask == Ask::at_a_step) ledger.poll_all_after(kStepPollSeconds);
  for (Ledger* each = &ledger; ask == Ask::now && each != nullptr; each = each->parent())
    each->poll_now();
  std::uint64_t all = ledger.most();
  // Values in host memory that somebody uses stay beside what devices take of it.
  if (Ledger* const host = ledger.parent()) {
    std::uint64_t values = 0;
    for (const LedgerReport::Line& line : host->report().held)
      if (line.kind == MemoryKind::values) values += line.bytes;
    values -= std::min(values, cached_host_bytes(environment));
    const std::uint64_t there = host->most();
    all = std::min(all, there - std::min(there, values));
  }
  const LedgerReport now = ledger.report();
  std::uint64_t stays = now.reserved, pinned = 0;
  for (const LedgerReport::Line& line : now.held) {
    const bool is_weights = line.kind == MemoryKind::weights;
    if (is_weights) pinned += line.pinned;
    stays += is_weights ? line.pinned : line.bytes;
  }
  stays -= std::min(stays, cached_bytes(environment, d));
  for (const ModelWeights& each : device.weights->models())
    if (each.model == model.identity) stays -= std::min(stays, each.pinned);
  // What small pieces share may lie free for the most part, and the ledger counts it all: a chunk
  // of those that are made there, and one of those that arrive. Where weights alone share, and none
  // of them is in use, it comes back when they go.
  const PoolUse pools = device.state->memory_use();
  const std::uint64_t shared =
      std::max(2 * std::min(all / Pool::kChunksInBudget, Pool::kMostShared),
               pools.beside_small - (pinned == 0 ? pools.beside_weights : 0));
  const auto budget = [&](std::uint64_t for_reading) {
    const std::uint64_t there = all - std::min(all, for_reading + stays + shared);
    return planned == 0 ? there : std::min(there, planned - std::min(planned, stays));
  };
  if (ledger.parent() == nullptr) return {budget(0), 0};
  const StagingReserve reading =
      staging_reserve(largest_read(model), d, environment.topology, environment);
  const std::uint64_t usual = budget(reading.wanted), most = budget(reading.min);
  return {usual, most - std::min(most, usual)};
}

CallPlacement decide(const Environment& environment, const Caller& caller, const Model& model,
                     const CallSpec& call) {
  const Topology topology = topology_now(environment);
  const Prices prices(topology, environment.costs);
  // What comes beside it nobody knows yet.
  CallRequest request{model,
                      caller.node.hints,
                      caller.assignment.device,
                      caller.assignment.devices,
                      prices,
                      {},
                      caller.number,
                      true};
  if (topology.devices.size() > 1) {
    std::map<heddle_dtype, std::shared_ptr<const CallLoad>> loads;
    for (const DeviceFacts& device : topology.devices) {
      auto& load = loads[device.compute];
      if (load == nullptr)
        load = std::make_shared<const CallLoad>(call_load(model, call, device.compute));
      request.loads.push_back(load);
    }
  }
  return place_call(request).placement;
}

CallPlacement placement_of(Environment& environment, const Caller& caller, const Model& model,
                           const CallSpec& call) {
  const std::uint32_t home = caller.assignment.device;
  if (environment.place_call) return environment.place_call(caller.node, home, model, call);
  if (environment.devices.size() == 1) return {ParallelMode::none, {home}, {}, {}, {}};
  // The node, for want of room, does stages one by one after all.
  if (caller.assignment.stages) return {ParallelMode::none, {home}, {}, {}, {}};
  if (caller.number < caller.assignment.calls.size()) {
    const PlacedCall& planned = caller.assignment.calls[caller.number];
    // Those of a node that reported none stand by model, and were made without shapes: decided
    // anew.
    if (planned.known && suits(planned.placement, model, call)) return planned.placement;
  }
  return decide(environment, caller, model, call);
}

}  // namespace

SessionDeviceSlots session_device_slots(Environment& environment, const Caller& caller,
                                        const Model& model, const CallSpec& call) {
  const std::vector<PlacedCall>& calls = caller.assignment.calls;
  const PlacedCall* const planned = caller.number < calls.size() ? &calls[caller.number] : nullptr;
  // Stages that were given up are called once more: the same budgets hold.
  const PlacedCall* const limited = caller.assignment.stages ? &calls.front() : planned;
  SessionDeviceSlots chosen;
  chosen.host_memory = environment.host_ledger;
  chosen.pinned_bytes = environment.topology.pinned_bytes;
  chosen.is_stage = caller.is_stage && planned != nullptr && planned->is_stage &&
                    planned->of->identity == model.identity && !environment.place_call;
  chosen.placement =
      chosen.is_stage ? planned->placement : placement_of(environment, caller, model, call);
  const std::uint32_t home =
      chosen.is_stage ? planned->placement.devices.front() : caller.assignment.device;
  if (chosen.placement.devices.empty()) chosen.placement = {ParallelMode::none, {home}, {}, {}, {}};
  const std::vector<std::uint32_t> devices = session_devices(chosen.placement, home);
  chosen.home = std::uint32_t(std::ranges::find(devices, home) - devices.begin());
  const Prices prices(environment.topology, environment.costs);
  for (const std::uint32_t d : devices) {
    const RunDevice& device = environment.devices[d];
    const std::uint64_t of_workflow =
        limited == nullptr || d >= limited->budgets.size() ? 0 : limited->budgets[d];
    const std::uint64_t planned_bytes =
        of_workflow != 0 ? of_workflow : environment.topology.devices[d].budget;
    const Allowed here = allowed_on(environment, d, model, planned_bytes);
    chosen.device_slots.push_back(
        {device.state.get(), device.weights.get(), here.budget, prices.rates(d), here.spare});
    // The session holds the model.
    if (here.budget != kNoLimit)
      chosen.device_slots.back().budget_now = [&environment, d, &model, planned_bytes] {
        return allowed_on(environment, d, model, planned_bytes, Ask::at_a_step).budget;
      };
  }
  const bool streams = std::ranges::any_of(
      chosen.device_slots, [](const SessionDeviceSlot& p) { return p.budget != kNoLimit; });
  if (!streams || !caller.assignment.borrows_memory || devices.size() == environment.devices.size())
    return chosen;
  const Prices now(topology_now(environment), environment.costs);
  for (std::uint32_t d = 0; d < environment.devices.size(); ++d) {
    const RunDevice& device = environment.devices[d];
    const std::uint64_t used = device.state->memory_use().used,
                        room = usable_bytes(now.topology().devices[d]);
    const std::uint64_t left =
        std::min(room - std::min(room, used), device.state->ledger().available());
    if (auto offer = session_donor(now, d, devices, left))
      chosen.donors.push_back({std::move(*offer), device.weights.get()});
  }
  return chosen;
}

}  // namespace heddle::engine
