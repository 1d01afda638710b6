// Calls of models whose blocks groups of devices divide, by tokens or rows. For estimate.cpp.
#pragma once

#include <vector>

#include "engine/place/estimate.h"

namespace heddle::engine {

// What a group of devices computes by itself: one set, or some of its items.
struct CallBranch {
  std::uint32_t set = 0;
  double fraction = 1;      // of the items
  std::uint32_t first = 0;  // the group's first device: an index into those of the placement
};
std::vector<CallBranch> call_branches(const CallLoad& load, const CallPlacement& placement);

// Of ranks that exchange what they compute.
CallEstimate estimate_shared(const CallCase& call, const CallPlacement& placement);
// Of blocks that are whole.
CallEstimate estimate_whole(const CallCase& call, const CallPlacement& placement);
// As estimate(), of devices that compute all the time.
CallEstimate estimate_without_rest(const CallCase& call, const CallPlacement& placement);

// An op, or what a share of the batch items, the tokens or (in mode tensor) the rows leaves of it.
// `busy`: as in Prices.
double op_seconds(const CallCase& call, std::uint32_t device, const BlockOp& op,
                  ParallelMode mode = ParallelMode::none, double fraction = 1, double busy = 1);
// The ops of a block one by one.
double work_seconds(const CallCase& call, std::uint32_t device, const BlockWork& work,
                    ParallelMode mode = ParallelMode::none, double fraction = 1, double busy = 1);

}  // namespace heddle::engine
