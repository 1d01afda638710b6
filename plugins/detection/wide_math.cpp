#include "wide_math.h"

#include <limits>
#include <numbers>

#include <heddle/batch_ops.hpp>

#include "plugins/blocks/wide.h"

namespace heddle::detection {
namespace {

constexpr double kAll = std::numeric_limits<float>::max();

// factor * x + shift.
Tensor scaled(Context& ctx, const Tensor& x, double factor, double shift) {
  return ops::scale_clamp(ctx, x, {factor, shift, -kAll, kAll});
}

// 1 / x of x above 0.
Tensor inverse(Context& ctx, const Tensor& x) {
  const Tensor root = ops::rsqrt(ctx, x);
  return ops::mul(ctx, root, root);
}

}  // namespace

Tensor narrow(Context& ctx, const Tensor& x) {
  return x.dtype() == ctx.compute() ? x : ops::cast(ctx, x, ctx.compute());
}

Tensor product(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
               heddle_activation f, const Tensor& residual) {
  return blocks::wide_linear(ctx, narrow(ctx, x), weight, bias, f, residual);
}

Tensor normalised(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  double eps) {
  const Tensor out = ctx.make(x.shape(), HEDDLE_F32);
  ops::layer_norm_into(ctx, x, weight, bias, eps, out);
  return out;
}

Tensor sum(Context& ctx, const Tensor& a, const Tensor& b) {
  if (!b) return a;
  const Tensor out = ctx.make(ops::broadcast(a, b), HEDDLE_F32);
  ops::add_into(ctx, a, b, out);
  return out;
}

Tensor sigmoid(Context& ctx, const Tensor& x) {
  const Tensor half = scaled(ctx, x, 0.5, 0);
  return scaled(ctx, ops::activate(ctx, half, HEDDLE_ACT_TANH), 0.5, 0.5);
}

Tensor logarithm(Context& ctx, const Tensor& x) {
  constexpr int kSteps = 3;
  constexpr double kMiddle = 1.4;  // of the logarithms of 1 and 16
  Tensor y = ctx.make(x.shape(), HEDDLE_F32);
  ops::fill(ctx, y, kMiddle);
  for (int step = 0; step < kSteps; ++step) {
    // e^y = (1 + t) / (1 - t), t being the hyperbolic tangent of y / 2.
    const Tensor t = ops::activate(ctx, scaled(ctx, y, 0.5, 0), HEDDLE_ACT_TANH);
    const Tensor power = ops::mul(ctx, scaled(ctx, t, 1, 1), inverse(ctx, scaled(ctx, t, -1, 1)));
    const Tensor change = ops::mul(ctx, ops::combine(ctx, {{2, x}, {-2, power}}),
                                   inverse(ctx, ops::combine(ctx, {{1, x}, {1, power}})));
    y = ops::combine(ctx, {{1, y}, {1, change}});
  }
  return y;
}

Tensor signed_logarithm(Context& ctx, const Tensor& x) {
  const Tensor above = logarithm(ctx, ops::scale_clamp(ctx, x, {1, 1, 1, kAll})),
               below = logarithm(ctx, ops::scale_clamp(ctx, x, {-1, 1, 1, kAll}));
  return ops::combine(ctx, {{1, above}, {-1, below}});
}

Tensor sine_features(Context& ctx, const Tensor& t, std::int64_t width) {
  constexpr double kLongest = 10000;
  const std::int64_t count = t.size(0), half = width / 2;
  const Tensor apart = ctx.make({count, width}, HEDDLE_F32);
  ops::timestep_embedding_into(ctx, t, {2 * std::numbers::pi, kLongest, 0, 0, 0}, apart);
  const Tensor out = ctx.make({count, half, 2}, HEDDLE_F32);
  for (int i = 0; i < 2; ++i)
    ops::copy_into(ctx, apart.slice(1, i * half, (i + 1) * half).reshape({count, half, 1}),
                   out.slice(2, i, i + 1));
  return out.reshape({count, width});
}

Tensor doubled(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const std::int64_t items = x.size(0), height = x.size(1), width = x.size(2), from = x.size(3),
                     to = weight.size(1);
  const Tensor cells =
      ops::batched_product(ctx, narrow(ctx, x).reshape({1, items * height * width, from}),
                           narrow(ctx, weight).reshape({1, from, to * 4}), HEDDLE_F32);
  const Tensor out = ctx.make({items, height, 2, width, 2, to}, HEDDLE_F32);
  ops::copy_into(ctx, cells.reshape({items, height, width, to, 2, 2}).permute({0, 1, 4, 2, 5, 3}),
                 out);
  const Tensor whole = out.reshape({items, 2 * height, 2 * width, to});
  ops::add_into(ctx, whole, bias.reshape({1, 1, 1, to}), whole);
  return whole;
}

Tensor convolved(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const auto around = std::int32_t(weight.size(2) / 2);
  return blocks::wide_conv2d(ctx, narrow(ctx, x), weight, bias,
                             heddle_conv2d_attrs{{1, 1}, {around, around, around, around}});
}

}  // namespace heddle::detection
