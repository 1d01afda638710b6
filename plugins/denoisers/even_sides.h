// plugins/denoisers/even_sides.h - pictures whose sides are no multiples of a token's, as ComfyUI
// completes them for all families. Used in blocks, as they are traced; any thread.
#pragma once

#include <heddle/node.hpp>

#include "patches.h"

namespace heddle::denoisers {

// A picture (B, C, H, W) whose sides are multiples of `patch`: itself, or a copy where the rows and
// columns that it lacks are its first ones. Throws invalid_argument where it has fewer than it
// lacks.
Tensor even_sides(Context& ctx, const Tensor& x, std::int64_t patch = kPatch);

}  // namespace heddle::denoisers
