// Weights: the layout in which each use of a weight stands on this device, and how it is made from
// the bytes of a file. Pure functions; make_weight enqueues.
#pragma once

#include <cstdint>

#include "device.h"

namespace heddle::cpu {

// The answer depends on the arguments and the device's settings only. Throws device::Error.
heddle_weight_layout weight_layout(const Device& device, std::int32_t use,
                                   const heddle_tensor_info& info);

// Enqueues casting, joining (rows along axis 0) and packing of the parts into dst, which has
// layout.bytes. The parts' memory has to stay until the stream is past it; the views are copied.
// Throws device::Error.
void make_weight(Stream& stream, const heddle_weight_layout& layout, std::uint32_t part_count,
                 const heddle_view* const* parts, void* dst);

}  // namespace heddle::cpu
