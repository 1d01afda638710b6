// Pictures in another size by Lanczos' filter with all of their channels, as Pillow scales them:
// colours of one with alpha count by it. One call's thread.
#pragma once

#include <heddle/node.hpp>

#include "plugins/blocks/resample.h"

namespace heddle::encoders {

// The first of pictures (B, H, W, C) f32 from 0 to 1, wherever they are: (1, h, w, C) f32 in host
// memory, through bytes where the size is another. Throws HEDDLE_CANCELLED.
Tensor lanczos_picture(Context& ctx, const Tensor& image, const blocks::GridSize& to);

}  // namespace heddle::encoders
