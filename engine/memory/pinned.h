// Pinned host memory with an owner, and buffers of it to pass bytes through. PinnedMemory: one
// thread at a time. StagingBuffers: one thread at a time, too; whoever shares them has the lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/device/device.h"

namespace heddle::core {

class PinnedMemory {
 public:
  // Throws out_of_memory. REQUIRES: device->has_pinned(). Holds the device open.
  PinnedMemory(std::shared_ptr<const Device> device, std::uint64_t bytes)
      : device_(std::move(device)),
        data_(static_cast<std::byte*>(device_->allocate_pinned(bytes))),
        bytes_(bytes) {}
  ~PinnedMemory() { device_->free_pinned(data_); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  std::byte* data() const { return data_; }
  std::uint64_t bytes() const { return bytes_; }
  const Device& device() const { return *device_; }

 private:
  std::shared_ptr<const Device> device_;
  std::byte* data_;
  std::uint64_t bytes_;
};

// Buffers that are out of use, to be used again: pinning memory takes longer than copying into it.
class StagingBuffers {
 public:
  // The smallest that is large enough and not more than twice as large; nullptr: there is none.
  std::unique_ptr<PinnedMemory> take(const Device& device, std::uint64_t bytes);
  void give(std::unique_ptr<PinnedMemory> buffer) { idle_.push_back(std::move(buffer)); }
  // The one that was given first, to be freed; nullptr: there is none.
  std::unique_ptr<PinnedMemory> drop();
  bool empty() const { return idle_.empty(); }

 private:
  std::vector<std::unique_ptr<PinnedMemory>> idle_;
};

}  // namespace heddle::core
