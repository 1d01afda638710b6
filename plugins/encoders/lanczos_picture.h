// Pictures in another size by Lanczos' filter with all of their channels, as Pillow scales them:
// colours of one with alpha count by it. One call's thread.
#pragma once

#include <heddle/node.hpp>

#include "plugins/blocks/resample.h"

namespace heddle::encoders {

// The first of pictures (B, H, W, C) f32 from 0 to 1, wherever they are: (1, h, w, C) f32 in host
// memory, through bytes where the size is another. is_cropped: of the part in the middle that has
// the aspect of `to`. Throws HEDDLE_CANCELLED.
Tensor lanczos_picture(Context& ctx, const Tensor& image, const blocks::GridSize& to,
                       bool is_cropped = false);

}  // namespace heddle::encoders
