// What a ControlNet reads of its hint: a picture, resized to the latent's pixels from the middle by
// the nearest cell, through the autoencoder and in the ControlNet's own units; with some a mask
// behind it. One call's thread.
#pragma once

#include "control_value.h"

#include <heddle/node.hpp>

namespace heddle::samplers {

// The hint of a ControlNet before the autoencoder and behind it, for `cells` (height, width) of the
// latent and a batch of `items`. None where the hint is no picture.
struct HintShapes {
  Shape pixels, latent;  // (B, H, W, C); (1|items, C', h, w)
};
std::optional<HintShapes> hint_shapes(const Control& control, const Shape& cells,
                                      std::int64_t items);

// (1|items, C', h, w) f32 on the device of the call. Calls the autoencoder's encoder.
Tensor hint_of(Context& ctx, const Control& control, const Shape& cells, std::int64_t items);

}  // namespace heddle::samplers
