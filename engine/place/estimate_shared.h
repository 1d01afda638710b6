// Calls of models whose blocks several devices share: by batch items, tokens or rows. For
// estimate.cpp.
#pragma once

#include "engine/place/estimate.h"

namespace heddle::engine {

CallEstimate estimate_shared(const CallCase& call, const CallPlacement& placement);
// As estimate(), of devices that compute all the time.
CallEstimate estimate_without_rest(const CallCase& call, const CallPlacement& placement);

// An op, or what a share of the batch items, tokens or rows leaves of it. `busy`: as in Prices.
double op_seconds(const CallCase& call, std::uint32_t device, const BlockOp& op,
                  ParallelMode mode = ParallelMode::none, double fraction = 1, double busy = 1);
// The ops of a block one by one.
double work_seconds(const CallCase& call, std::uint32_t device, const BlockWork& work,
                    ParallelMode mode = ParallelMode::none, double fraction = 1, double busy = 1);

}  // namespace heddle::engine
