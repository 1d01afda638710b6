// Context: what a driver makes of a device at its first work: here only counted. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "heddle/device.hpp"
#include "index_state.h"

namespace heddle::fake {

class Context {
 public:
  explicit Context(IndexState& counters) : counters_(counters) {}

  bool is_made() const { return is_made_.load(); }
  void make() {
    if (!is_made_.exchange(true)) ++counters_.contexts_made;
  }
  // REQUIRES: nothing comes meanwhile. Throws when something of the device is left.
  void release(std::uint64_t memory_bytes, std::uint64_t pinned_bytes) {
    if (handles() > 0 || memory_bytes > 0 || pinned_bytes > 0)
      device::fail(HEDDLE_INVALID_ARGUMENT, "the context is asked for while ", handles(),
                   " streams and events, ", memory_bytes, " bytes of memory and ", pinned_bytes,
                   " bytes of pinned memory are left");
    is_made_ = false;
  }

  // Streams and events.
  std::uint64_t handles() const { return handles_.load(); }
  void add_handle() {
    make();
    ++handles_;
  }
  void remove_handle() { --handles_; }

 private:
  IndexState& counters_;
  std::atomic<bool> is_made_{false};
  std::atomic<std::uint64_t> handles_{0};
};

}  // namespace heddle::fake
