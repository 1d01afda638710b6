#include "taesd_blocks.h"

#include <limits>

#include <heddle/ops.hpp>

#include "plugins/blocks/wide.h"

namespace heddle::vae {
namespace {

constexpr heddle_conv2d_attrs kTaesdPoint{{1, 1}, {0, 0, 0, 0}};  // 1x1
constexpr heddle_conv2d_attrs kTaesdSame{{1, 1}, {1, 1, 1, 1}};   // 3x3 that keeps the size
constexpr heddle_conv2d_attrs kTaesdHalve{{2, 2}, {1, 1, 1, 1}};  // 3x3, every second pixel
constexpr double kTaesdLimit = 3;  // of latents, softly: 3 tanh(z / 3)

Tensor affine(Context& ctx, const Tensor& x, double factor, double offset) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  return ops::scale_clamp(ctx, x, {factor, offset, -kNone, kNone});
}

Tensor relu_conv(Context& ctx, const Tensor& x, const Tensor& filter, const Tensor& bias,
                 const Tensor& residual = {}) {
  const Tensor out = ops::conv2d(ctx, x, filter, bias, kTaesdSame, residual);
  ops::activate_into(ctx, out, HEDDLE_ACT_RELU, out);
  return out;
}

}  // namespace

void TaesdLatentIn::execute(Context& ctx) {
  const double factor = ctx[scale] / kTaesdLimit;
  const Tensor f32 = ops::cast(ctx, ctx[z].permute({0, 2, 3, 1}), HEDDLE_F32);
  const Tensor small = affine(ctx, f32, factor, -ctx[shift] * factor);
  const Tensor limited = affine(ctx, ops::activate(ctx, small, HEDDLE_ACT_TANH), kTaesdLimit, 0);
  ctx[out] = relu_conv(ctx, ops::cast(ctx, limited, ctx.compute()), ctx[conv], ctx[conv_bias]);
}

void TaesdImageIn::execute(Context& ctx) {
  const Tensor pixels = affine(ctx, ctx[image], 0.5, 0.5);
  ctx[out] = ops::conv2d(ctx, ops::cast(ctx, pixels, ctx.compute()), ctx[conv], ctx[conv_bias],
                         kTaesdSame);
}

void TaesdResidual::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Tensor base = ctx[skip] ? ops::conv2d(ctx, x, ctx[skip], {}, kTaesdPoint) : x;
  const Tensor first = relu_conv(ctx, x, ctx[conv1], ctx[conv1_bias]);
  const Tensor second = relu_conv(ctx, first, ctx[conv2], ctx[conv2_bias]);
  ctx[out] = relu_conv(ctx, second, ctx[conv3], ctx[conv3_bias], base);
}

void TaesdUpsample::execute(Context& ctx) {
  ctx[out] =
      ops::conv2d(ctx, ops::upsample_nearest(ctx, ctx[hidden], 2), ctx[conv], {}, kTaesdSame);
}

void TaesdDownsample::execute(Context& ctx) {
  ctx[out] = ops::conv2d(ctx, ctx[hidden], ctx[conv], {}, kTaesdHalve);
}

void TaesdImageOut::execute(Context& ctx) {
  const Tensor made = blocks::wide_conv2d(ctx, ctx[hidden], ctx[conv], ctx[conv_bias], kTaesdSame);
  ctx[image] = affine(ctx, made, 2, -1);
}

void TaesdLatentOut::execute(Context& ctx) {
  const Tensor made = blocks::wide_conv2d(ctx, ctx[hidden], ctx[conv], ctx[conv_bias], kTaesdSame);
  ctx[mean] =
      affine(ctx, ops::contiguous(ctx, made.permute({0, 3, 1, 2})), 1 / ctx[scale], ctx[shift]);
}

}  // namespace heddle::vae
