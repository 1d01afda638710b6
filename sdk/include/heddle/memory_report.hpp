// heddle/memory_report.hpp - budgets, and who uses them. Part of heddle/engine.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle {

// What of a memory is held for something.
struct MemoryUsage {
  std::string kind;   // "weights", "staging ring", "activations", "values", "staging"
  std::string owner;  // of weights: the model; else mostly empty
  std::uint64_t bytes = 0;
  std::uint64_t pinned = 0;  // of them: in use now. The rest could be evicted
};

// A budget and who uses it.
struct MemoryReport {
  std::uint64_t budget = 0;       // bytes; 0: there is none
  std::uint64_t headroom = 0;     // that stay free for other programs
  std::uint64_t taken = 0;        // by this engine
  std::uint64_t reserved = 0;     // claimed by work that is about to begin
  std::uint64_t available = 0;    // that could be taken without evicting anything
  std::uint64_t peak = 0;         // the most that was taken at a time
  std::vector<MemoryUsage> held;  // most bytes first; what is taken and not held lies free in pools
  // Of host memory: bytes of weights read from their files, for the first time, and again.
  std::uint64_t read_first = 0, read_again = 0;
};

}  // namespace heddle
