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

// Fails at the nth time from when it was set, and at the times that follow it.
class Fault {
 public:
  void set(std::uint64_t nth, std::uint64_t times = 1) {
    const std::lock_guard lock(mutex_);
    before_ = nth == 0 ? 0 : nth - 1;
    times_ = nth == 0 ? 0 : times;
  }
  bool strikes() {
    const std::lock_guard lock(mutex_);
    if (times_ == 0) return false;
    if (before_ > 0) {
      --before_;
      return false;
    }
    --times_;
    ++struck_;
    return true;
  }
  std::uint64_t struck() const {
    const std::lock_guard lock(mutex_);
    return struck_;
  }
  void reset() {
    const std::lock_guard lock(mutex_);
    before_ = times_ = struck_ = 0;
  }

 private:
  mutable std::mutex mutex_;
  std::uint64_t before_ = 0, times_ = 0, struck_ = 0;  // mutex_
};

// Over 15 members: counters and faults, each by itself.
struct IndexState {
  std::atomic<std::uint64_t> copies{0}, weights{0}, allocations{0}, peak_bytes{0}, freed_in_use{0};
  std::atomic<std::uint64_t> foreign_bytes{0};
  std::atomic<std::uint64_t> pinned_peak_bytes{0}, pinned_allocations{0}, replays{0};
  Fault alloc_fault, copy_fault, launch_fault, weight_fault, refusal, pinned_fault;

  std::atomic<std::uint64_t> launches_run{0}, questions{0}, contexts_made{0};

  void count_launch(const std::string& op);
  void launch_begins();  // on a stream's thread
  // The nth launch from now on calls this when it begins.
  void set_launch_call(std::uint64_t nth, void (*call)(void*), void* user);
  void weight_is_asked_for();
  // All weights from the nth from now on call this.
  void set_weight_call(std::uint64_t nth, void (*call)(void*), void* user);
  std::uint64_t launches(const char* op);  // nullptr: all
  void raise_peak(std::uint64_t bytes);
  void raise_pinned_peak(std::uint64_t bytes);
  void reset();

 private:
  std::mutex mutex_;
  std::map<std::string, std::uint64_t> launches_;  // mutex_
  std::uint64_t launches_before_call_ = 0;         // mutex_
  void (*launch_call_)(void*) = nullptr;           // mutex_
  void* launch_user_ = nullptr;                    // mutex_
  std::uint64_t weights_before_call_ = 0;          // mutex_
  void (*weight_call_)(void*) = nullptr;           // mutex_
  void* weight_user_ = nullptr;                    // mutex_
};

IndexState& index_state(std::uint32_t index);  // indices that are too large share the last one
void reset_all_states();
Clock& the_clock();

}  // namespace heddle::fake
