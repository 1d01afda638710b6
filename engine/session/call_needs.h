// What a placed call of a model needs of the memory of its devices, counted before it runs: its
// session is planned as if there were room for everything. Thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/program/session_plan.h"
#include "engine/resources/environment.h"

namespace heddle::engine {

// The device slots are those of session_devices(): of the placement, then home. Throws what
// plan_session() does.
SessionPlan plan_with_room(const CallSpec& call, const CallPlacement& placement, std::uint32_t home,
                           const Topology& topology, const Environment& environment);
// The same with kernels that `choose` gives.
SessionPlan plan_with_room(const CallSpec& call, const CallPlacement& placement, std::uint32_t home,
                           const Topology& topology, const Environment& environment,
                           const ChooseKernel& choose);

// With the chunks that small pieces share, one for those that are made there and one for those that
// arrive: most of each may lie free, and their size is a part of the budget that is asked for here.
std::uint64_t with_shared_chunks(std::uint64_t bytes);

// Those of plan_with_room(), by device. Kept: runs of one workflow ask for the same again and
// again.
std::vector<CallNeed> call_needs(const CallSpec& call, const CallPlacement& placement,
                                 std::uint32_t home, const Topology& topology,
                                 Environment& environment);

}  // namespace heddle::engine
