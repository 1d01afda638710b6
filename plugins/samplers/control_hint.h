// What a ControlNet reads of its hint: a picture, resized to the latent's pixels from the middle by
// the nearest cell, through the autoencoder and in the ControlNet's own units; with some a mask
// behind it. Some read the pixels themselves. One call's thread.
#pragma once

#include <memory_resource>

#include <heddle/node.hpp>

#include "control_value.h"
#include "hint_pixels.h"

namespace heddle::samplers {

// The hint of a ControlNet before the autoencoder and behind it, for `cells` (height, width) of the
// latent and a batch of `items`. None where the hint is no picture.
struct HintShapes {
  Shape pixels, latent;  // (B, H, W, C); (1|items, C', h, w), or (1|items, C, H, W) of pixels
};
std::optional<HintShapes> hint_shapes(const Control& control, const Shape& cells,
                                      std::int64_t items);

// What the autoencoder is to see, and the mask behind its result: `kept` is 1 where the picture
// stays. Without one it has no values.
struct Hint {
  HintPixels picture, kept;
  bool operator==(const Hint&) const = default;
};
Hint read_hint(Context& ctx, const Control& control, const Shape& cells,
               std::pmr::memory_resource& memory);

// What the ControlNet reads, f32 on the device of the call. Calls the autoencoder's encoder but for
// those that read pixels.
Tensor encoded_hint(Context& ctx, const Control& control, Hint hint, std::int64_t items,
                    std::pmr::memory_resource& memory);

}  // namespace heddle::samplers
