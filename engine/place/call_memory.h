// What a call that is placed needs of each device's memory. Pure.
#pragma once

#include <vector>

#include "engine/place/estimate.h"

namespace heddle::engine {

// By index into placement.devices: weights and, at its peak, what is alive beside them. For calls
// whose blocks are whole: on one device or in layers, with branches that may be side by side.
struct CallMemory {
  DeviceNeed need;
  std::uint64_t weight_bytes = 0;  // of what it wants
  std::uint64_t kept_bytes = 0;    // of it: values that are made once and kept for all steps
};
std::vector<CallMemory> whole_memory(const CallCase& call, const CallPlacement& placement);

}  // namespace heddle::engine
