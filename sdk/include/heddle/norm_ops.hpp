// heddle/norm_ops.hpp - one function per op of abi/norm_ops.h, as heddle/ops.hpp has them.
#pragma once

#include "abi/norm_ops.h"
#include "ops.hpp"

namespace [[gnu::visibility("hidden")]] heddle {
namespace ops {

// scale and shift may be empty.
inline void modulated_rms_norm_into(Context& ctx, const Tensor& x, const Tensor& scale,
                                    const Tensor& shift, double eps, const Tensor& out) {
  static const Op op(HEDDLE_OP_MODULATED_RMS_NORM);
  ctx.op(op, {x.raw(), scale.raw(), shift.raw()}, {out.raw()}, heddle_norm_attrs{eps});
}

// weight may be empty.
inline void norm_rope_half_into(Context& ctx, const Tensor& x, const Tensor& weight,
                                const Tensor& cos, const Tensor& sin,
                                const heddle_norm_rope_half_attrs& attrs, const Tensor& out) {
  static const Op op(HEDDLE_OP_NORM_ROPE_HALF);
  ctx.op(op, {x.raw(), weight.raw(), cos.raw(), sin.raw()}, {out.raw()}, attrs);
}

}  // namespace ops
}  // namespace heddle
