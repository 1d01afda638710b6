// What the plugin has to know about the machine beside its memory: its name, its threads. Read from
// /proc, the process's control groups and CPUID. Pure questions; any thread.
#pragma once

#include <string>

namespace heddle::cpu {

std::string processor_name();
// Processors this process may run on, at most as many as its control groups pay for. At least
// 1.
unsigned usable_threads();
// Whether the processor and the system have matrix tiles for bf16 (AMX), and the environment's
// ONEDNN_MAX_CPU_ISA, where it is set, allows them.
bool has_bf16_tiles();

}  // namespace heddle::cpu
