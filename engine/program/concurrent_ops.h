// Which launches of a session's step may run at the same time on one device: those of branches of
// two lanes, each lane in its order, and one waits for the other where they touch the same memory.
// Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/program/session_plan.h"

namespace heddle::engine {

struct ConcurrentOp {
  std::uint32_t lane = 0;
  std::int32_t after =
      -1;  // place in the list of one of another lane that has to be done; -1: none
};

// One for each of `ops`, of the plan, all on one device slot, in the order in which they would run
// one after another. Whatever keeps the order of each lane and what `after` says gives the same
// bytes.
std::vector<ConcurrentOp> concurrent_ops(const SessionPlan& plan,
                                         std::span<const std::uint32_t> ops);

}  // namespace heddle::engine
