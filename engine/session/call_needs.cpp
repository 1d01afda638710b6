#include "engine/session/call_needs.h"

#include <algorithm>

#include "engine/graph/model.h"
#include "engine/memory/pool.h"
#include "engine/place/call_steps.h"
#include "engine/tensor/value.h"

namespace heddle::engine {

namespace {

// So large that everything stays, and yet a budget: what is needed is only counted where there is
// one.
constexpr std::uint64_t kPlenty = std::uint64_t{1} << 60;

void add_infos(Hasher& key, const CallSpec::Infos& infos) {
  key.add(infos.size());
  for (const auto& [name, info] : infos) {
    key.add(name).add(info.dtype).add(info.rank);
    for (std::uint32_t i = 0; i < info.rank; ++i) key.add(info.shape[i]);
  }
}

template <class T>
void add_list(Hasher& key, const std::vector<T>& list) {
  key.add(list.size());
  for (const T& each : list) key.add(each);
}

// Of all that the needs depend on, beside the devices themselves.
Hash128 key_of(const CallSpec& call, const CallPlacement& placement, std::uint32_t home) {
  Hasher key;
  key.add(get_model(*call.model)->identity).add(call.step_count).add(call.sets.size()).add(home);
  for (const CallSpec::Set& set : call.sets) {
    add_infos(key, set.constants);
    add_infos(key, set.steps);
  }
  add_infos(key, call.schedule);
  key.add(int(placement.parallel));
  add_list(key, placement.devices);
  add_list(key, placement.of_block);
  add_list(key, placement.of_set);
  add_list(key, placement.item_fractions);
  add_list(key, placement.rank_fractions);
  return key.finish();
}

}  // namespace

SessionPlan plan_with_room(const CallSpec& call, const CallPlacement& placement, std::uint32_t home,
                           const Topology& topology, const Environment& environment) {
  const std::vector<std::uint32_t> devices = session_devices(placement, home);
  return plan_with_room(
      call, placement, home, topology, environment,
      [&](std::uint32_t device_slot, const heddle_op_call& op) {
        const DeviceState& state = *environment.devices[devices[device_slot]].state;
        const heddle_kernel& kernel = state.kernels().choose(state.device(), op);
        return ChosenKernel{
            &kernel, kernel.workspace == nullptr ? 0 : kernel.workspace(state.device().raw(), &op)};
      });
}

SessionPlan plan_with_room(const CallSpec& call, const CallPlacement& placement, std::uint32_t home,
                           const Topology& topology, const Environment& environment,
                           const ChooseKernel& choose) {
  const std::vector<std::uint32_t> devices = session_devices(placement, home);
  const Prices prices(topology, environment.costs);
  SessionSetup setup = session_setup(call, placement, home, prices);
  for (SessionDevice& device : setup.devices) device.budget = kPlenty;
  setup.layout = [&](std::uint32_t device_slot, const WeightSource& source) {
    return environment.devices[devices[device_slot]].weights->layout(source);
  };
  const SessionSpec spec = session_spec(std::move(setup));
  return plan_session(*get_model(*call.model)->graph, spec, choose);
}

std::uint64_t with_shared_chunks(std::uint64_t bytes) {
  constexpr std::uint64_t kChunks = 2;
  return bytes + std::min(kChunks * bytes / (Pool::kChunksInBudget - kChunks) + 1,
                          kChunks * Pool::kMostShared);
}

std::vector<CallNeed> call_needs(const CallSpec& call, const CallPlacement& placement,
                                 std::uint32_t home, const Topology& topology,
                                 Environment& environment) {
  const Hash128 key = key_of(call, placement, home);
  {
    const auto kept = environment.kept_call_needs.lock();
    if (const auto found = kept->find(key); found != kept->end()) return found->second;
  }
  const SessionPlan plan = plan_with_room(call, placement, home, topology, environment);
  const std::vector<std::uint32_t> devices = session_devices(placement, home);
  std::vector<CallNeed> needs;
  for (std::uint32_t p = 0; p < devices.size(); ++p)
    needs.push_back(
        {devices[p], plan.min_bytes(p), plan.need_bytes(p), plan.needs[p].resident_weights});
  constexpr std::size_t kMostKept = 1024;
  const auto kept = environment.kept_call_needs.lock();
  if (kept->size() >= kMostKept) kept->clear();
  kept->emplace(key, needs);
  return needs;
}

}  // namespace heddle::engine
