// What an engine may use of its memories, as its caller says it. A value.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace heddle::engine {

// Bytes, or a share of a whole that is known later.
struct MemorySize {
  std::uint64_t bytes = 0;
  double share = 0;  // 0 to 1; where it is not 0, it counts
  std::uint64_t of(std::uint64_t whole) const {
    return share > 0 ? std::uint64_t(double(whole) * share) : bytes;
  }
};

struct MemoryPolicy {
  // By device or kind of device. Of a kind each device has it.
  std::map<std::string, MemorySize> budgets;   // to be used at most
  std::map<std::string, MemorySize> reserves;  // to be left free for others; "host" is host memory
  std::optional<MemorySize> host_budget;       // of host memory; CPU devices have shares of it
  std::optional<MemorySize> pinned;  // of host memory, pinned at most; else half of the host budget
  double poll_seconds = 2;           // between two questions to a driver
  std::function<double()> now;       // monotonic seconds, any thread; empty: the system's clock
};

}  // namespace heddle::engine
