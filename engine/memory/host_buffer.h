// Host memory with an owner, pinned by a device's plugin or plain. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "engine/device/device.h"
#include "engine/memory/host_budget.h"

namespace heddle::engine {

class HostBuffer {
 public:
  // As large as the room that it has. Pinned. Throws out_of_memory. REQUIRES: device->has_pinned().
  // Holds the device open.
  HostBuffer(HostBytes budget, std::shared_ptr<const Device> device)
      : budget_(std::move(budget)),
        device_(std::move(device)),
        data_(static_cast<std::byte*>(device_->allocate_pinned(bytes()))) {}
  // Plain, whole pages, which the system has back when it goes. Throws out_of_memory.
  explicit HostBuffer(HostBytes budget);
  ~HostBuffer();
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  std::byte* data() const { return data_; }
  std::uint64_t bytes() const { return budget_.bytes(); }
  const Device* pinned_by() const { return device_.get(); }  // nullptr: it is plain

 private:
  HostBytes budget_;  // goes back after the memory
  std::shared_ptr<const Device> device_;
  std::byte* data_;
};

}  // namespace heddle::engine
