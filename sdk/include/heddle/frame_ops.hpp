// heddle/frame_ops.hpp - one function per op of abi/frame_ops.h, as heddle/ops.hpp has them.
#pragma once

#include "abi/frame_ops.h"
#include "ops.hpp"

namespace [[gnu::visibility("hidden")]] heddle {
namespace ops {

inline Shape conv3d_shape(const Tensor& x, const Tensor& weight, const heddle_conv3d_attrs& attrs) {
  const auto size = [&](int axis) {
    return (x.size(1 + axis) + attrs.padding[axis] + attrs.padding[3 + axis] -
            weight.size(2 + axis)) /
               attrs.stride[axis] +
           1;
  };
  return {x.size(0), size(0), size(1), size(2), weight.size(0)};
}
inline void conv3d_into(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const heddle_conv3d_attrs& attrs, const Tensor& residual,
                        const Tensor& out) {
  static const Op op(HEDDLE_OP_CONV3D);
  ctx.op(op, {x.raw(), weight.raw(), bias.raw(), residual.raw()}, {out.raw()}, attrs);
}

}  // namespace ops
}  // namespace heddle
