// Calls of models whose blocks several devices share: by batch items, tokens or rows. For
// estimate.cpp.
#pragma once

#include "engine/plan/estimate.h"

namespace heddle::core {

CallEstimate estimate_shared(const CallCase& call, const CallPlacement& placement);

inline double work_seconds(const CallCase& call, std::uint32_t device, const BlockWork& work) {
  return call.prices.seconds(device, work.flops, work.bytes, work.ops);
}

}  // namespace heddle::core
