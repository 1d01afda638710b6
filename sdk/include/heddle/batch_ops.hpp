// heddle/batch_ops.hpp - one function per op of abi/batch_ops.h, as heddle/ops.hpp has them.
#pragma once

#include "abi/batch_ops.h"
#include "ops.hpp"

namespace [[gnu::visibility("hidden")]] heddle {
namespace ops {

// a (B, M, K), b (B, K, N) -> (B, M, N) of this type.
inline Tensor batched_product(Context& ctx, const Tensor& a, const Tensor& b, heddle_dtype dtype) {
  static const Op op(HEDDLE_OP_BATCHED_PRODUCT);
  const Tensor out = ctx.make({a.size(0), a.size(1), b.size(2)}, dtype);
  ctx.op(op, {a.raw(), b.raw()}, {out.raw()});
  return out;
}

}  // namespace ops
}  // namespace heddle
