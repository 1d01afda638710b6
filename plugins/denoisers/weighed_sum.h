// plugins/denoisers/weighed_sum.h - sums over the pixels of a picture. Any thread.
#pragma once

#include <heddle/ops.hpp>

namespace heddle::denoisers {

// x (N, H, W, C) summed over rows and columns, each channel of a pixel times its number: weights
// (R, S, C), of which a size is that of x, or 1 -> (N, 1|H, 1|W, C), f32.
inline Tensor weighed_sum(Context& ctx, const Tensor& x, const Tensor& weights) {
  static const Op op(HEDDLE_OP_DEPTHWISE_CONV2D);
  const Tensor out = ctx.make(
      {x.size(0), x.size(1) - weights.size(0) + 1, x.size(2) - weights.size(1) + 1, x.size(3)},
      HEDDLE_F32);
  ctx.op(op, {x.raw(), weights.raw(), nullptr}, {out.raw()},
         heddle_conv2d_attrs{{1, 1}, {0, 0, 0, 0}});
  return out;
}

}  // namespace heddle::denoisers
