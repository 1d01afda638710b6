// Host memory with an owner, pinned by a device's plugin or plain, and pinned buffers to pass bytes
// through. HostBuffer: one thread at a time. StagingBuffers: one thread at a time, too; whoever
// shares them has the lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/device/device.h"
#include "engine/memory/host_room.h"

namespace heddle::core {

class HostBuffer {
 public:
  // As large as the room that it has. Pinned. Throws out_of_memory. REQUIRES: device->has_pinned().
  // Holds the device open.
  HostBuffer(HostBytes room, std::shared_ptr<const Device> device)
      : room_(std::move(room)),
        device_(std::move(device)),
        data_(static_cast<std::byte*>(device_->allocate_pinned(bytes()))) {}
  // Plain, whole pages, which the system has back when it goes. Throws out_of_memory.
  explicit HostBuffer(HostBytes room);
  ~HostBuffer();
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  std::byte* data() const { return data_; }
  std::uint64_t bytes() const { return room_.bytes(); }
  const Device* pinned_by() const { return device_.get(); }  // nullptr: it is plain

 private:
  HostBytes room_;  // goes back after the memory
  std::shared_ptr<const Device> device_;
  std::byte* data_;
};

// Buffers that are out of use, to be used again: pinning memory takes longer than copying into it.
class StagingBuffers {
 public:
  // The smallest that is large enough and no larger than `most`; nullptr: there is none.
  std::unique_ptr<HostBuffer> take(const Device& device, std::uint64_t bytes, std::uint64_t most);
  // Of plain ones one of exactly so many bytes, or any; nullptr: there is none.
  std::unique_ptr<HostBuffer> take_plain(std::optional<std::uint64_t> bytes);
  // Throws std::bad_alloc, and then the caller still has it.
  void give(std::unique_ptr<HostBuffer>& buffer) { idle_.push_back(std::move(buffer)); }
  // The one that was given first, to be freed; nullptr: there is none.
  std::unique_ptr<HostBuffer> drop();
  bool empty() const { return idle_.empty(); }

 private:
  std::vector<std::unique_ptr<HostBuffer>> idle_;
};

}  // namespace heddle::core
