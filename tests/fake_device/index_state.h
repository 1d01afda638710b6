// What is counted and what shall fail, for an index, whether a device of it is open or not; and the
// clock of all devices. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "clock.h"

namespace heddle::fake {

// Fails once, at the nth time from when it was set.
class Fault {
 public:
  void set(std::uint64_t nth) { left_.store(nth); }
  bool strikes() {
    std::uint64_t left = left_.load();
    while (left != 0)
      if (left_.compare_exchange_weak(left, left - 1)) return left == 1;
    return false;
  }

 private:
  std::atomic<std::uint64_t> left_{0};
};

struct IndexState {
  std::atomic<std::uint64_t> copies{0}, weights{0}, allocations{0}, peak_bytes{0}, freed_in_use{0};
  std::atomic<std::uint64_t> foreign_bytes{0};
  std::atomic<std::uint64_t> pinned_peak_bytes{0};
  Fault alloc_fault, copy_fault, launch_fault, pinned_fault;

  void count_launch(const std::string& op);
  std::uint64_t launches(const char* op);  // nullptr: all
  void raise_peak(std::uint64_t bytes);
  void raise_pinned_peak(std::uint64_t bytes);
  void reset();

 private:
  std::mutex mutex_;
  std::map<std::string, std::uint64_t> launches_;  // mutex_
};

IndexState& index_state(std::uint32_t index);  // indices that are too large share the last one
void reset_all_states();
Clock& the_clock();

}  // namespace heddle::fake
