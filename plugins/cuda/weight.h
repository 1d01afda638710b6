// Weights: the layout in which each use of a weight stands on this device, and how it is made there
// from the bytes of a file. Pure functions; make_weight enqueues.
#pragma once

#include <cstdint>

#include "stream.h"

namespace heddle::cuda {

// The answer depends on the arguments and the device's settings only. Throws device::Error.
heddle_weight_layout weight_layout(const Device& device, std::int32_t use,
                                   const heddle_tensor_info& info);

// Enqueues upload, casting and joining of the parts (host memory, rows along axis 0) into dst,
// which has layout.bytes. The parts' memory has to stay until the stream is past it. Throws
// device::Error.
void make_weight(Stream& stream, const heddle_weight_layout& layout, std::uint32_t part_count,
                 const heddle_view* const* parts, void* dst);

}  // namespace heddle::cuda
