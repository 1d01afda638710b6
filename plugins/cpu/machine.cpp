#include "machine.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace heddle::cpu {

namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

// A file that holds one number. Absent, "max" or unreadable: no limit.
std::uint64_t number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  return file >> value ? value : kNoLimit;
}

// A field of a "name value" file, in bytes as they stand there.
std::uint64_t field_in(const std::string& path, const std::string& name, std::uint64_t otherwise) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    std::uint64_t value = 0;
    if (words >> word >> value && word == name) return value;
  }
  return otherwise;
}

// The folders of this process's control group, from its own up to the root (version 2 of the
// interface).
std::vector<std::string> control_groups() {
  std::vector<std::string> folders;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("0::")) continue;
    for (std::string path = line.substr(3);;) {
      while (!path.empty() && path.back() == '/') path.pop_back();
      folders.push_back("/sys/fs/cgroup" + path);
      if (path.empty()) break;
      path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
  }
  return folders;
}

// Room that a limit leaves: cached files count as used but are given back when memory is wanted.
std::uint64_t room(std::uint64_t limit, std::uint64_t used, std::uint64_t cached_files) {
  used -= std::min(used, cached_files);
  return limit - std::min(limit, used);
}

}  // namespace

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const auto colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

Memory memory() {
  constexpr std::uint64_t kKibi = 1024;
  Memory result{field_in("/proc/meminfo", "MemTotal:", 0) * kKibi,
                field_in("/proc/meminfo", "MemAvailable:", 0) * kKibi};
  const auto limit_to = [&](std::uint64_t limit, std::uint64_t used, std::uint64_t cached_files) {
    if (limit >= result.total) return;
    result.total = limit;
    result.free = std::min(result.free, room(limit, used, cached_files));
  };
  for (const std::string& folder : control_groups())
    limit_to(number_in(folder + "/memory.max"), number_in(folder + "/memory.current"),
             field_in(folder + "/memory.stat", "inactive_file", 0));
  const std::string old = "/sys/fs/cgroup/memory";  // version 1
  limit_to(number_in(old + "/memory.limit_in_bytes"), number_in(old + "/memory.usage_in_bytes"),
           field_in(old + "/memory.stat", "total_inactive_file", 0));
  return result;
}

unsigned usable_threads() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  unsigned threads = sched_getaffinity(0, sizeof allowed, &allowed) == 0
                         ? static_cast<unsigned>(CPU_COUNT(&allowed))
                         : 1;
  for (const std::string& folder : control_groups()) {
    std::ifstream file(folder + "/cpu.max");
    double quota = 0, period = 0;
    if (file >> quota >> period && period > 0)
      threads = std::min(threads, static_cast<unsigned>(std::ceil(quota / period)));
  }
  return std::max(1u, threads);
}

bool has_bf16_tiles() {
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
