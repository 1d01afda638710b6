#include "engine/memory/machine_memory.h"

#include <algorithm>

#include "heddle/control_groups.hpp"

namespace heddle::engine {

MachineMemory machine_memory() {
  const machine::Memory memory = machine::memory();
  return {memory.total, memory.free};
}

std::uint64_t default_host_budget(std::uint64_t total) {
  constexpr std::uint64_t kGb = 1'000'000'000;
  const std::uint64_t half = total / 2;
  return std::min(total, std::max(4 * kGb, half - std::min(half, 2 * kGb)));
}

}  // namespace heddle::engine
