// heddle/control_groups.hpp - what the machine and the control groups of this process leave it of
// memory and processors: version 1 and 2 of the interface, also both at once, with the limits of
// all groups around its own. Header-only, for whoever divides up a host. Nothing here has state and
// nothing throws but for a lack of memory; what cannot be read limits nothing. Any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

// Hidden: two plugins in one process must not share what is inline here.
namespace [[gnu::visibility("hidden")]] heddle {
namespace machine {

struct Memory {
  std::uint64_t total = 0, free = 0;  // bytes that this process may use in all, and now
};

namespace detail {

namespace fs = std::filesystem;

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

// The one number of a file. "max", or nothing to read: no limit.
inline std::uint64_t number_in(const fs::path& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  return file >> number ? number : kNoLimit;
}

// What follows `name` in a file of lines "name number".
inline std::uint64_t field_in(const fs::path& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    std::uint64_t number = 0;
    if (words >> word >> number && word == name) return number;
  }
  return 0;
}

// "\040" stands for a space in mountinfo, and so on.
inline std::string unescaped(std::string_view text) {
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 3 >= text.size() || !is_octal(text[i + 1]) ||
        !is_octal(text[i + 2]) || !is_octal(text[i + 3])) {
      plain += text[i];
      continue;
    }
    plain += char((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
    i += 3;
  }
  return plain;
}

inline bool holds_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == word) return true;
    list.remove_prefix(std::min(list.size(), comma + 1));
  }
  return false;
}

// A hierarchy of groups: that of a controller of version 1, or with an empty name that of
// version 2. The path of this process's group in it.
inline std::optional<std::string> own_group(const fs::path& root, std::string_view controller) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "4:cpu,cpuacct:/path"
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view names = std::string_view(line).substr(first + 1, second - first - 1);
    if (controller.empty() ? line.starts_with("0::") : holds_word(names, controller))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

struct Mount {
  std::string group, folder;  // the group that stands at this folder
};
inline std::vector<Mount> mounts(const fs::path& root, std::string_view controller) {
  std::vector<Mount> found;
  std::ifstream file(root / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    // "35 31 0:32 /group /folder rw,relatime [tags] - cgroup source rw,memory"
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream before(line.substr(0, dash)), behind(line.substr(dash + 3));
    std::string skipped, group, folder, type, options;
    if (!(before >> skipped >> skipped >> skipped >> group >> folder)) continue;
    behind >> type >> skipped >> options;
    if (controller.empty() ? type == "cgroup2"
                           : type == "cgroup" && holds_word(options, controller))
      found.push_back({unescaped(group), unescaped(folder)});
  }
  return found;
}

// The way from one group down to another; nothing when it leads elsewhere.
inline std::optional<std::string> below(std::string_view from, std::string_view to) {
  if (from.ends_with('/')) from.remove_suffix(1);
  if (!to.starts_with(from) || (to.size() > from.size() && to[from.size()] != '/'))
    return std::nullopt;
  std::string way(to.substr(from.size()));
  if (way.find("/..") != std::string::npos) return std::nullopt;  // outside of our namespace
  while (way.ends_with('/')) way.pop_back();
  return way;
}

// The folders of this process's group and of those around it, innermost first, as far up as they
// are mounted here.
inline std::vector<fs::path> groups(const fs::path& root, std::string_view controller) {
  const std::optional<std::string> own = own_group(root, controller);
  if (!own) return {};
  std::vector<Mount> mounted = mounts(root, controller);
  if (mounted.empty())  // it cannot be read: then where they are everywhere
    mounted.push_back(
        {"/", controller.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + std::string(controller)});
  // The mount that shows most of the way.
  const Mount* best = nullptr;
  std::string way;
  for (const Mount& mount : mounted)
    if (auto here = below(mount.group, *own);
        here && (best == nullptr || here->size() > way.size())) {
      best = &mount;
      way = *std::move(here);
    }
  // A container may show its own group under a name from outside: what is mounted is that group.
  if (best == nullptr) best = &mounted.front();
  const fs::path top = root / fs::path(best->folder).relative_path();
  std::vector<fs::path> folders;
  for (;; way.resize(way.rfind('/'))) {
    folders.push_back(way.empty() ? top : top / way.substr(1));
    if (way.empty()) return folders;
  }
}

// Files count as used memory there, but those not used of late go when memory is wanted.
inline void limit_memory(Memory& memory, std::uint64_t limit, std::uint64_t used,
                         std::uint64_t files) {
  if (limit >= memory.total) return;  // also what version 1 says for none: almost 2^63
  memory.total = limit;
  used = used == kNoLimit ? 0 : used - std::min(used, files);
  memory.free = std::min(memory.free, limit - std::min(limit, used));
}

}  // namespace detail

// `root` is where the file system begins: tests give a tree of their own.
inline Memory memory(const std::filesystem::path& root = "/") {
  using namespace detail;
  constexpr std::uint64_t kKibi = 1024;
  const Memory all{field_in(root / "proc/meminfo", "MemTotal:") * kKibi,
                   field_in(root / "proc/meminfo", "MemAvailable:") * kKibi};
  Memory least = all;
  const auto limit_to = [&](std::uint64_t limit, std::uint64_t used, std::uint64_t files) {
    Memory here = all;  // the least free need not be where the least limit is
    limit_memory(here, limit, used, files);
    least = {std::min(least.total, here.total), std::min(least.free, here.free)};
  };
  for (const fs::path& group : groups(root, ""))
    // Above `high` a group is slowed down until it hardly moves.
    limit_to(std::min(number_in(group / "memory.max"), number_in(group / "memory.high")),
             number_in(group / "memory.current"), field_in(group / "memory.stat", "inactive_file"));
  const std::vector<fs::path> old = groups(root, "memory");
  for (const fs::path& group : old) {
    // Version 1 knew groups whose limits did not hold for those inside.
    if (group != old.front() && number_in(group / "memory.use_hierarchy") == 0) break;
    limit_to(number_in(group / "memory.limit_in_bytes"), number_in(group / "memory.usage_in_bytes"),
             field_in(group / "memory.stat", "total_inactive_file"));
  }
  return least;
}

// Processors that the groups pay for, as 1.5; infinity where they set no limit.
inline double paid_processors(const std::filesystem::path& root = "/") {
  using namespace detail;
  double least = std::numeric_limits<double>::infinity();
  const auto limit_to = [&](double quota, double period) {
    if (quota > 0 && period > 0) least = std::min(least, quota / period);
  };
  for (const fs::path& group : groups(root, "")) {
    std::ifstream file(group / "cpu.max");
    double quota = 0, period = 0;
    if (file >> quota >> period) limit_to(quota, period);
  }
  for (const fs::path& group : groups(root, "cpu")) {
    std::ifstream quotas(group / "cpu.cfs_quota_us"), periods(group / "cpu.cfs_period_us");
    double quota = 0, period = 0;
    if (quotas >> quota && periods >> period) limit_to(quota, period);  // -1: none
  }
  return least;
}

}  // namespace machine
}  // namespace heddle
