// How much memory the machine has for this process, and how much of it is free. Any thread.
#pragma once

#include <cstdint>

namespace heddle::engine {

struct MachineMemory {
  std::uint64_t total = 0,
                free = 0;  // bytes; of the machine, or of a limit that holds for this process
};
MachineMemory machine_memory();

// What the engine may use of it where nobody says more: half of it less 2 GB, but at least 4 GB, or
// what there is.
std::uint64_t default_host_budget(std::uint64_t total);

}  // namespace heddle::engine
