// The parallel modes that there are, for tests that try all of them.
#pragma once

#include <bit>
#include <vector>

#include "engine/program/call_placement.h"

namespace heddle::test {

// Single ones, and all that go together.
inline const std::vector<engine::ParallelMode>& all_parallel_modes() {
  using enum engine::ParallelMode;
  static const std::vector<engine::ParallelMode> modes{none,
                                                       layers,
                                                       cfg,
                                                       data,
                                                       sequence,
                                                       tensor,
                                                       cfg | data,
                                                       cfg | layers,
                                                       cfg | sequence,
                                                       cfg | tensor,
                                                       data | layers,
                                                       data | sequence,
                                                       data | tensor,
                                                       cfg | data | layers,
                                                       cfg | data | sequence,
                                                       cfg | data | tensor};
  return modes;
}

inline bool is_combined(engine::ParallelMode mode) {
  return std::popcount(std::uint32_t(mode)) > 1;
}

}  // namespace heddle::test
