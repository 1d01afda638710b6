// Memory of a device that several processes use (heddle/abi/device_sharing.h). Thread-safe.
#pragma once

#include "engine/device/device.h"
#include "heddle/abi/device_sharing.h"

namespace heddle::engine {

// nullptr: devices of the kind share no memory with other processes. REQUIRES: a whole desc.
const heddle_device_sharing* sharing_of(const heddle_device_desc& desc);

// Whether this device does, by what its driver says.
bool can_share(const Device& device);

// Of all that follows, REQUIRES: can_share(). Throw what the device says.
//
// What so many bytes take of the device's memory: as many, or more.
std::uint64_t shared_bytes(const Device& device, std::uint64_t bytes);
// Goes by Device::free().
std::byte* allocate_shared(const Device& device, std::size_t bytes);
// What another process maps it by; its descriptor is the caller's to close.
heddle_shared_memory share(const Device& device, const void* memory);
std::byte* map_shared(const Device& device, const heddle_shared_memory& memory, bool is_writable);
void unmap_shared(const Device& device, void* mapped);

}  // namespace heddle::engine
