#include "engine/program/session_memory.h"

#include <algorithm>

#include "engine/program/layout.h"

namespace heddle::core {

namespace {
constexpr std::uint64_t kAlignment = 256;  // what every device's kernels are content with
}

void StorageUse::add(Rate phase, std::uint32_t at) {
  if (first_phase < 0) {
    first_phase = int(phase);
    first = at;
  }
  if (first_phase == int(phase)) first = std::min(first, at);
  last = int(phase) > last_phase ? at : std::max(last, at);
  last_phase = std::max(last_phase, int(phase));
}

void lay_out_session(SessionPlan& plan, std::vector<StorageUse> uses, std::size_t places) {
  plan.arenas.assign(places, {});
  for (const SessionPlan::Output& output : plan.outputs) {  // outputs live to the end of their phase, or beyond it
    StorageUse& u = uses[output.value.storage];
    if (output.rate == Rate::step) u.last = std::uint32_t(plan.ops.size() + 1);
    else u.last_phase = int(Rate::step);
  }
  std::vector<std::array<std::vector<std::int32_t>, 3>> shared(places);
  for (std::size_t s = 0; s < plan.storages.size(); ++s) {
    SessionStorage& storage = plan.storages[s];
    const StorageUse& u = uses[s];
    if (storage.kind == SessionStorage::Kind::scratch && u.first_phase >= 0 && u.first_phase == u.last_phase && !u.crosses) {
      shared[storage.place][u.first_phase].push_back(std::int32_t(s));
      continue;
    }
    if (storage.kind == SessionStorage::Kind::scratch) storage.kind = SessionStorage::Kind::persistent;
    if (storage.kind != SessionStorage::Kind::persistent && storage.kind != SessionStorage::Kind::step_input) continue;
    std::uint64_t& end = plan.arenas[storage.place].persistent_bytes;
    storage.offset = end;
    end += (storage.bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  for (std::size_t place = 0; place < places; ++place)
    for (const auto& members : shared[place]) {  // the phases run one after another, so they share one arena
      std::vector<Lifetime> lifetimes;
      for (const std::int32_t s : members) lifetimes.push_back({plan.storages[s].bytes, uses[s].first, uses[s].last});
      const Layout layout = lay_out(lifetimes, kAlignment);
      for (std::size_t i = 0; i < members.size(); ++i) plan.storages[members[i]].offset = layout.offsets[i];
      plan.arenas[place].scratch_bytes = std::max(plan.arenas[place].scratch_bytes, layout.bytes);
    }
}

}  // namespace heddle::core
