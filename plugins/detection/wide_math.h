// plugins/detection/wide_math.h - what the blocks of models that find things in pictures are made
// of beyond one op each. As in plugins/blocks/wide.h only operands of products are in the compute
// type; what is added up, normalised or read by others is f32. Functions of a call; any thread.
#pragma once

#include <heddle/ops.hpp>

namespace heddle::detection {

// x in the compute type; itself where it is.
Tensor narrow(Context& ctx, const Tensor& x);
// f(x (..., K) weight^T + bias) + residual -> (..., N) f32. bias and residual may be empty.
Tensor product(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
               heddle_activation f = HEDDLE_ACT_NONE, const Tensor& residual = {});
// A layer norm in f32.
Tensor normalised(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  double eps);
// a + b in f32; b may be empty.
Tensor sum(Context& ctx, const Tensor& a, const Tensor& b);

// 1 / (1 + exp(-x)), by the hyperbolic tangent. f32.
Tensor sigmoid(Context& ctx, const Tensor& x);
// The natural logarithm of x (f32, 1 to 16) by Halley's steps y + 2 (x - e^y) / (x + e^y), whose
// error is a third power of the one before: three of them leave what f32 rounds.
Tensor logarithm(Context& ctx, const Tensor& x);
// x / |x| ln(1 + |x|) of x between -15 and 15, f32.
Tensor signed_logarithm(Context& ctx, const Tensor& x);

// t (N) f32 -> (N, width) f32: sin(2 pi t / 10000^(2i / width)), then the cosine of the same, for
// each i below width / 2. Source: PositionEmbeddingSine of DETR (Carion et al. 2020).
Tensor sine_features(Context& ctx, const Tensor& t, std::int64_t width);

// A transposed convolution of 2x2 with strides of 2: x (B, H, W, C), weight (C, O, 2, 2), bias (O)
// -> (B, 2 H, 2 W, O) f32.
Tensor doubled(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias);
// A convolution that keeps the size: x (B, H, W, C), weight (O, C, R, R), R odd -> f32.
Tensor convolved(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias);

}  // namespace heddle::detection
