// What a ControlNet reads of its hint: a picture, resized to the latent's pixels from the middle by
// the nearest cell, through the autoencoder and in the ControlNet's own units; with some a mask
// behind it. Some read the pixels themselves. One call's thread.
#pragma once

#include "control_value.h"

#include <memory_resource>

#include <heddle/node.hpp>

namespace heddle::samplers {

// The hint of a ControlNet before the autoencoder and behind it, for `cells` (height, width) of the
// latent and a batch of `items`. None where the hint is no picture.
struct HintShapes {
  Shape pixels, latent;  // (B, H, W, C); (1|items, C', h, w), or (1|items, C, H, W) of pixels
};
std::optional<HintShapes> hint_shapes(const Control& control, const Shape& cells,
                                      std::int64_t items);

// Numbers of pictures (rows, height, width, colours) in host memory; of masks with one colour.
struct HintPixels {
  std::int64_t rows = 1, colours = 1;
  std::int64_t height = 0, width = 0;
  std::pmr::vector<float> values;
  bool operator==(const HintPixels&) const = default;
};
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
