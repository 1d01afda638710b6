// plugins/blocks/wide.h - ops whose result stays f32 in every compute type.
//
// A matrix product is fast when its operands are 16 bits long; what it gives has been summed in f32
// and need not be cut to 16 bits unless the next product reads it. So only operands of products are
// made in the compute type, and what is added up over layers, normalised or softened is f32: each
// number is then rounded once on its way from product to product. Any thread.
#pragma once

#include <heddle/ops.hpp>

namespace heddle::blocks {

inline Tensor wide_linear(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                          heddle_activation f = HEDDLE_ACT_NONE, const Tensor& residual = {}) {
  Shape shape = x.shape();
  shape.back() = weight.size(0);
  const Tensor out = ctx.make(shape, HEDDLE_F32);
  ops::linear_into(ctx, x, weight, bias, f, residual, out);
  return out;
}

inline Tensor wide_embedding(Context& ctx, const Tensor& table, const Tensor& ids) {
  Shape shape = ids.shape();
  shape.push_back(table.size(1));
  const Tensor out = ctx.make(shape, HEDDLE_F32);
  ops::embedding_into(ctx, table, ids, out);
  return out;
}

inline Tensor wide_conv2d(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                          const heddle_conv2d_attrs& attrs) {
  const Tensor out = ctx.make(ops::conv2d_shape(x, weight, attrs), HEDDLE_F32);
  ops::conv2d_into(ctx, x, weight, bias, attrs, {}, out);
  return out;
}

}  // namespace heddle::blocks
