// IMAGE and MASK values against 8-bit pictures. IMAGE is (B, H, W, C) f32, 0 to 1; MASK is (B, H,
// W) f32, 1 where something is selected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>

#include "plugins/image/picture.h"

namespace heddle::image {

// 255 x, clipped to 0 ... 255, then truncated: ComfyUI's rule. NaN becomes 0 and is counted.
struct Quantised {
  Bytes samples;  // taken from `memory`
  std::size_t nan_count = 0;
};
Quantised quantise(std::span<const float> values,
                   std::pmr::memory_resource& memory = *std::pmr::get_default_resource());

// RGB / 255 into rgb (3 W H), and 1 - alpha / 255 into mask (W H) where the picture has alpha.
// Either may be empty: then it is not written.
void spread(const Picture& picture, std::span<float> rgb, std::span<float> mask);

}  // namespace heddle::image
