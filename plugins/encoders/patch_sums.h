// Sums over squares of a picture's patches, of which vision towers make tokens. Call it from
// blocks.
#pragma once

#include <heddle/ops.hpp>

namespace heddle::encoders {

// x added up along an axis, which is then 1 long.
inline Tensor added_along(Context& ctx, const Tensor& x, int axis) {
  Tensor sum = x.slice(axis, 0, 1);
  for (std::int64_t i = 1; i < x.size(axis); ++i) sum = ops::add(ctx, sum, x.slice(axis, i, i + 1));
  return sum;
}

// x (1, rows columns, D), row after row -> (1, M, D): the sums of side x side of them. REQUIRES:
// side divides both.
inline Tensor patch_sums(Context& ctx, const Tensor& x, std::int64_t rows, std::int64_t columns,
                         std::int64_t side) {
  const std::int64_t width = x.size(2), down = rows / side, right = columns / side;
  const Tensor bands = added_along(ctx, x.reshape({down, side, right, side, width}), 1);
  return ops::contiguous(ctx, added_along(ctx, bands, 3)).reshape({1, down * right, width});
}

}  // namespace heddle::encoders
