// What calls of models need of memory, as it was counted once: runs of one workflow ask for the
// same again and again. Values; the map is guarded.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "engine/base/guarded.h"
#include "engine/base/hash.h"

namespace heddle::engine {

// A call's needs of one device, in bytes.
struct CallNeed {
  std::uint32_t device = 0;
  std::uint64_t least = 0;    // with less it does not run
  std::uint64_t all = 0;      // with so much nothing is streamed
  std::uint64_t weights = 0;  // of `all`: shared by all runs that use the model
};

// By everything that the needs depend on.
using KeptCallNeeds = Guarded<std::map<Hash128, std::vector<CallNeed>>>;

}  // namespace heddle::engine
