#include "machine.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "heddle/control_groups.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace heddle::cpu {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const auto colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

unsigned usable_threads() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  unsigned threads = sched_getaffinity(0, sizeof allowed, &allowed) == 0
                         ? static_cast<unsigned>(CPU_COUNT(&allowed))
                         : 1;
  const double paid = machine::paid_processors();
  if (paid < threads) threads = static_cast<unsigned>(std::ceil(paid));
  return std::max(1u, threads);
}

// oneDNN's own limit on instructions holds for us, too.
static bool are_tiles_wanted() {
  const char* const limit = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (limit == nullptr || *limit == '\0') return true;
  const std::string_view text = limit;
  return text == "DEFAULT" || text.find("AMX") != text.npos;
}

bool has_bf16_tiles() {
  if (!are_tiles_wanted()) return false;
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kSystemSavesState = 1u << 27, kTiles = 1u << 24, kTilesBf16 = 1u << 22,
                     kTileState = 3u << 17;
  if (__get_cpuid_count(1, 0, &a, &b, &c, &d) == 0 || (c & kSystemSavesState) == 0) return false;
  unsigned low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if ((low & kTileState) != kTileState) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kTiles) != 0 && (d & kTilesBf16) != 0;
#else
  return false;
#endif
}

}  // namespace heddle::cpu
