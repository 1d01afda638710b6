#include "engine/program/session_memory.h"

#include <algorithm>

#include "engine/program/layout.h"

namespace heddle::engine {

namespace {
constexpr std::uint64_t kAlignment = 256;  // what every device's kernels are content with
}

void StorageUse::add(Phase phase, std::uint32_t at) {
  if (first_phase < 0) {
    first_phase = int(phase);
    first = at;
  }
  if (first_phase == int(phase)) first = std::min(first, at);
  last = int(phase) > last_phase ? at : std::max(last, at);
  last_phase = std::max(last_phase, int(phase));
}

void lay_out_session(SessionPlan& plan, std::vector<StorageUse> uses, std::size_t device_slots) {
  plan.arenas.assign(device_slots, {});
  for (const SessionPlan::Output& output :
       plan.outputs) {  // outputs live to the end of their phase, or beyond it
    StorageUse& u = uses[output.value.storage];
    if (output.phase == Phase::per_step)
      u.last = std::uint32_t(plan.ops.size() + 1);
    else
      u.last_phase = int(Phase::per_step);
  }
  std::vector<std::array<std::vector<std::int32_t>, 3>> shared(device_slots);
  for (std::size_t s = 0; s < plan.storages.size(); ++s) {
    SessionStorage& storage = plan.storages[s];
    const StorageUse& u = uses[s];
    if (storage.kind == SessionStorage::Kind::scratch && u.first_phase >= 0 &&
        u.first_phase == u.last_phase && !u.crosses) {
      shared[storage.device_slot][u.first_phase].push_back(std::int32_t(s));
      continue;
    }
    if (storage.kind == SessionStorage::Kind::scratch)
      storage.kind = SessionStorage::Kind::persistent;
    if (storage.kind != SessionStorage::Kind::persistent &&
        storage.kind != SessionStorage::Kind::step_input)
      continue;
    std::uint64_t& end = plan.arenas[storage.device_slot].persistent_bytes;
    storage.offset = end;
    end += (storage.bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  for (std::size_t device_slot = 0; device_slot < device_slots; ++device_slot)
    for (const auto& members :
         shared[device_slot]) {  // the phases run one after another, so they share one arena
      std::vector<Lifetime> lifetimes;
      for (const std::int32_t s : members)
        lifetimes.push_back({plan.storages[s].bytes, uses[s].first, uses[s].last});
      const Layout layout = lay_out(lifetimes, kAlignment);
      for (std::size_t i = 0; i < members.size(); ++i)
        plan.storages[members[i]].offset = layout.offsets[i];
      plan.arenas[device_slot].scratch_bytes =
          std::max(plan.arenas[device_slot].scratch_bytes, layout.bytes);
    }
}

}  // namespace heddle::engine
