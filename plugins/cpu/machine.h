// What the plugin has to know about the machine: its name, its memory, its threads. Read from
// /proc, the process's control group and CPUID. Pure questions; any thread.
#pragma once

#include <cstdint>
#include <string>

namespace heddle::cpu {

struct Memory {
  std::uint64_t total,
      free;  // bytes; what this process may use, at most what its control group allows
};

std::string processor_name();
Memory memory();
// Processors this process may run on, at most the whole ones its control group pays for. At
// least 1.
unsigned usable_threads();
// Whether the processor and the system have matrix tiles for bf16 (AMX).
bool has_bf16_tiles();

}  // namespace heddle::cpu
