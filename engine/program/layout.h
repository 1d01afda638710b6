// Puts pieces of memory with known lifetimes into one arena so that it stays small. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace heddle::engine {

struct Lifetime {
  std::uint64_t bytes = 0;
  std::uint32_t first = 0, last = 0;  // steps, inclusive, during which the bytes are needed
  std::int32_t lane = -1;  // pieces of two lanes share no byte, whenever they live; -1: of none
};

struct Layout {
  std::vector<std::uint64_t> offsets;  // one for each lifetime
  std::uint64_t bytes = 0;             // of the arena
};

// Greedy by size: the largest pieces first, each at the lowest offset that is free during its whole
// life. Close to the lower bound (the largest sum alive at one step) for the graphs of models.
// Deterministic.
Layout lay_out(const std::vector<Lifetime>& pieces, std::uint64_t alignment);

}  // namespace heddle::engine
