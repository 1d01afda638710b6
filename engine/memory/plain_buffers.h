// Plain buffers among those that are out of use: memory that the system gives anew is cleared
// first, which takes half as long as a disk takes to fill it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/memory/host_buffer.h"

namespace heddle::core {

// One of exactly so many bytes, or any; nullptr: there is none. The others stay in their order.
inline std::unique_ptr<HostBuffer> take_plain(StagingBuffers& idle,
                                              std::optional<std::uint64_t> bytes) {
  std::unique_ptr<HostBuffer> found;
  std::vector<std::unique_ptr<HostBuffer>> others;
  while (std::unique_ptr<HostBuffer> buffer = idle.drop()) {
    const bool fits = buffer->pinned_by() == nullptr && (!bytes || buffer->bytes() == *bytes);
    if (fits && found == nullptr)
      found = std::move(buffer);
    else
      others.push_back(std::move(buffer));
  }
  for (std::unique_ptr<HostBuffer>& other : others) idle.give(std::move(other));
  return found;
}

}  // namespace heddle::core
