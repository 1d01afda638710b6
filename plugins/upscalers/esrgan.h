// plugins/upscalers/esrgan.h - ESRGAN and Real-ESRGAN, by the names of all their files.
//
// "upscaler"  input image (B, H, W, C) loop-invariant, in [0, 1], sides multiples of `multiple`
//             -> image (B, s H, s W, C') f32, about [0, 1], not clamped
//
// Settings: those of upscaler_shape.h; s is the scale. Stateless, any thread.
#pragma once

#include "esrgan_blocks.h"

#include <heddle/model.hpp>

namespace heddle::upscalers {

struct Esrgan {
  static constexpr Family family{"esrgan", "upscaler", 1, "ESRGAN: a picture, larger"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::upscalers
