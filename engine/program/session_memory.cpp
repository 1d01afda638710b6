#include "engine/program/session_memory.h"

#include <algorithm>
#include <set>
#include <utility>

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

namespace {

// By storage: the lane of the branches that use it; -1: several, or none.
std::vector<std::int32_t> storage_lanes(const SessionPlan& plan) {
  constexpr std::int32_t kUnused = -2;
  std::vector<std::int32_t> lanes(plan.storages.size(), kUnused);
  const auto use = [&](std::int32_t storage, std::uint32_t branch) {
    if (storage < 0) return;
    const auto lane = std::int32_t(lane_of(branch));
    std::int32_t& known = lanes[storage];
    known = known == kUnused || known == lane ? lane : -1;
  };
  const auto use_all = [&](const PlannedOp& op) {
    for (const auto* list : {&op.op.in, &op.op.out})
      for (const Operand& o : *list) use(o.storage, op.branch);
    use(op.workspace, op.branch);
  };
  for (const PlannedOp& op : plan.ops) use_all(op);
  for (const SliceCopy& slice : plan.slices) use_all(slice.copy);
  for (std::int32_t& lane : lanes) lane = std::max(lane, -1);
  return lanes;
}

struct LaneLayout {
  Layout layout;
  std::uint64_t bytes_without = 0;  // of the arena, if no piece had a lane
  bool has_lanes = false;
};

// The pieces by lane where that takes little more room.
LaneLayout lay_out_lanes(const std::vector<Lifetime>& pieces, std::uint64_t more_bytes) {
  std::vector<Lifetime> together = pieces;
  std::set<std::int32_t> lanes;
  for (Lifetime& piece : together) lanes.insert(std::exchange(piece.lane, -1));
  lanes.erase(-1);
  LaneLayout made{lay_out(together, kAlignment)};
  made.bytes_without = made.layout.bytes;
  if (more_bytes == 0 || lanes.size() < 2) return made;
  Layout apart = lay_out(pieces, kAlignment);
  made.has_lanes = apart.bytes <= made.bytes_without + more_bytes;
  if (made.has_lanes) made.layout = std::move(apart);
  return made;
}

}  // namespace

void lay_out_session(SessionPlan& plan, std::vector<StorageUse> uses,
                     const std::vector<std::uint64_t>& lane_bytes) {
  const std::size_t device_slots = lane_bytes.size();
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
  const std::vector<std::int32_t> lanes = storage_lanes(plan);
  for (std::size_t device_slot = 0; device_slot < device_slots; ++device_slot) {
    SessionPlan::Arenas& arenas = plan.arenas[device_slot];
    std::uint64_t bytes_without = 0;
    for (std::size_t phase = 0; phase < shared[device_slot].size(); ++phase) {
      // The phases run one after another, so they share one arena.
      const std::vector<std::int32_t>& members = shared[device_slot][phase];
      std::vector<Lifetime> lifetimes;
      for (const std::int32_t s : members)
        lifetimes.push_back({plan.storages[s].bytes, uses[s].first, uses[s].last, lanes[s]});
      const bool has_steps = phase == std::size_t(Phase::per_step);
      const LaneLayout made = lay_out_lanes(lifetimes, has_steps ? lane_bytes[device_slot] : 0);
      for (std::size_t i = 0; i < members.size(); ++i)
        plan.storages[members[i]].offset = made.layout.offsets[i];
      arenas.scratch_bytes = std::max(arenas.scratch_bytes, made.layout.bytes);
      arenas.has_lanes = arenas.has_lanes || made.has_lanes;
      bytes_without = std::max(bytes_without, made.bytes_without);
    }
    arenas.lane_bytes = arenas.scratch_bytes - std::min(arenas.scratch_bytes, bytes_without);
  }
}

}  // namespace heddle::engine
