#include "engine/memory/machine_memory.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

namespace heddle::core {

namespace {

std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

// The number behind `name` in a file of lines "name number".
std::uint64_t field_in(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    number = std::strtoull(line.c_str() + name.size(), nullptr, 10);
    break;
  }
  return number;
}

}  // namespace

MachineMemory machine_memory() {
  constexpr std::uint64_t kKilo = 1024;
  MachineMemory memory{field_in("/proc/meminfo", "MemTotal:") * kKilo,
                       field_in("/proc/meminfo", "MemAvailable:") * kKilo};
  // Of a container. Pages of files count as used there, but are given back when memory is wanted.
  const std::string group = "/sys/fs/cgroup/";
  if (const auto limit = number_in(group + "memory.max"); limit && *limit < memory.total) {
    const std::uint64_t used = number_in(group + "memory.current").value_or(0);
    const std::uint64_t pages = field_in(group + "memory.stat", "inactive_file ");
    const std::uint64_t taken = used - std::min(used, pages);
    memory.total = *limit;
    memory.free = std::min(memory.free, *limit - std::min(*limit, taken));
  }
  return memory;
}

std::uint64_t default_host_budget(std::uint64_t total) {
  constexpr std::uint64_t kGb = 1'000'000'000;
  const std::uint64_t half = total / 2;
  return std::min(total, std::max(4 * kGb, half - std::min(half, 2 * kGb)));
}

}  // namespace heddle::core
