// plugins/denoisers/even_sides.h - latents with a side of an odd number of pixels, as families that
// make tokens of 2x2 pixels take them. Used in blocks, as they are traced; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::denoisers {

// A picture (B, C, H, W) with even sides: itself, or a copy where the row and the column that it
// lacks are its first ones.
Tensor even_sides(Context& ctx, const Tensor& x);

}  // namespace heddle::denoisers
