#include "autoencoder_kl_blocks.h"

#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "plugins/blocks/frame_residual.h"
#include "plugins/blocks/wide.h"

namespace heddle::vae {
namespace {

constexpr heddle_conv2d_attrs kPoint{{1, 1}, {0, 0, 0, 0}};  // 1x1
constexpr heddle_conv2d_attrs kSame{{1, 1}, {1, 1, 1, 1}};   // 3x3 that keeps the size
constexpr heddle_conv2d_attrs kHalve{
    {2, 2}, {0, 0, 1, 1}};  // 3x3, every second pixel, padded below and to the right only

// (B, C, h, w) of any float type as activations (B, h, w, C).
Tensor channels_last(Context& ctx, const Tensor& z) {
  return ops::cast(ctx, z.permute({0, 2, 3, 1}), ctx.compute());
}

// Activations (B, h, w, C) as (B, C, h, w) f32.
Tensor channels_first(Context& ctx, const Tensor& x) {
  return ops::cast(ctx, x.permute({0, 3, 1, 2}), HEDDLE_F32);
}

heddle_group_norm_attrs norm_attrs(double eps, std::int64_t groups, heddle_activation activation) {
  return {eps, checked_cast<std::int32_t>(groups, "groups"), activation};
}

}  // namespace

void VaeLatentIn::execute(Context& ctx) {
  Tensor x = channels_last(ctx, ctx[z]);
  if (ctx[quant]) x = ops::conv2d(ctx, x, ctx[quant], ctx[quant_bias], kPoint);
  ctx[out] = ops::conv2d(ctx, x, ctx[conv], ctx[conv_bias], kSame);
}

void VaeImageIn::execute(Context& ctx) {
  const Tensor pixels = ctx[image];
  if (pixels.size(3) != ctx[conv].size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT, "the encoder takes " + std::to_string(ctx[conv].size(1)) +
                                             " channels, the picture has " +
                                             std::to_string(pixels.size(3)));
  ctx[out] =
      ops::conv2d(ctx, ops::cast(ctx, pixels, ctx.compute()), ctx[conv], ctx[conv_bias], kSame);
}

void VaeResnet::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const auto attrs = norm_attrs(ctx[eps], ctx[groups], HEDDLE_ACT_SILU);
  const Tensor first = ops::conv2d(ctx, ops::group_norm(ctx, x, ctx[norm1], ctx[norm1_bias], attrs),
                                   ctx[conv1], ctx[conv1_bias], kSame);
  const Tensor base =
      ctx[shortcut] ? ops::conv2d(ctx, x, ctx[shortcut], ctx[shortcut_bias], kPoint) : x;
  const Tensor normed = ops::group_norm(ctx, first, ctx[norm2], ctx[norm2_bias], attrs);
  ctx[out] = ops::conv2d(ctx, normed, ctx[conv2], ctx[conv2_bias], kSame, base);
}

void VaeFrames::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  ctx[out] = blocks::frame_residual(ctx, x,
                                    {ctx[norm1], ctx[norm1_bias], ctx[conv1], ctx[conv1_bias],
                                     ctx[norm2], ctx[norm2_bias], ctx[conv2], ctx[conv2_bias]},
                                    {}, blocks::frame_gate(ctx, ctx[mix], x.size(3), false),
                                    norm_attrs(ctx[eps], ctx[groups], HEDDLE_ACT_SILU));
}

void VaeFramesOut::execute(Context& ctx) {
  constexpr heddle_conv3d_attrs kThree{{1, 1, 1}, {1, 0, 0, 1, 0, 0}};
  const Tensor frames = ctx[image];
  Shape video = frames.shape();
  video.insert(video.begin(), 1);
  const Tensor made = ctx.make(video, HEDDLE_F32);
  ops::conv3d_into(ctx, ops::cast(ctx, frames, ctx.compute()).reshape(video), ctx[conv],
                   ctx[conv_bias], kThree, {}, made);
  ctx[out] = made.reshape(frames.shape());
}

void VaeAttention::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const std::int64_t batch = x.size(0), height = x.size(1), width = x.size(2), channels = x.size(3),
                     pixels = height * width;
  const Tensor normed = ops::group_norm(ctx, x, ctx[norm], ctx[norm_bias],
                                        norm_attrs(ctx[eps], ctx[groups], HEDDLE_ACT_NONE));
  const bool filters = bool(ctx[qkv_filter]);
  const Tensor projected = filters
                               ? ops::conv2d(ctx, normed, ctx[qkv_filter], ctx[qkv_bias], kPoint)
                               : ops::linear(ctx, normed, ctx[qkv], ctx[qkv_bias]);
  const Tensor rows = projected.reshape({batch, pixels, 1, 3 * channels});
  const auto third = [&](int i) { return rows.slice(3, i * channels, (i + 1) * channels); };
  const Tensor seen =
      ops::attention(ctx, third(0), third(1), third(2), {}, 1 / std::sqrt(double(channels)));
  const Tensor attended = seen.reshape({batch, height, width, channels});
  ctx[out] = filters ? ops::conv2d(ctx, attended, ctx[proj_filter], ctx[proj_bias], kPoint, x)
                     : ops::linear(ctx, attended, ctx[proj], ctx[proj_bias], HEDDLE_ACT_NONE, x);
}

void VaeUpsample::execute(Context& ctx) {
  ctx[out] = ops::conv2d(ctx, ops::upsample_nearest(ctx, ctx[hidden], 2), ctx[conv], ctx[conv_bias],
                         kSame);
}

void VaeDownsample::execute(Context& ctx) {
  ctx[out] = ops::conv2d(ctx, ctx[hidden], ctx[conv], ctx[conv_bias], kHalve);
}

void VaeImageOut::execute(Context& ctx) {
  const auto attrs = norm_attrs(ctx[eps], ctx[groups], HEDDLE_ACT_SILU);
  const Tensor normed = ops::group_norm(ctx, ctx[hidden], ctx[norm], ctx[norm_bias], attrs);
  ctx[image] = blocks::wide_conv2d(ctx, normed, ctx[conv], ctx[conv_bias], kSame);
}

void VaeLatentOut::execute(Context& ctx) {
  const auto attrs = norm_attrs(ctx[eps], ctx[groups], HEDDLE_ACT_SILU);
  const Tensor normed = ops::group_norm(ctx, ctx[hidden], ctx[norm], ctx[norm_bias], attrs);
  Tensor moments = ops::conv2d(ctx, normed, ctx[conv], ctx[conv_bias], kSame);
  if (ctx[quant]) moments = ops::conv2d(ctx, moments, ctx[quant], ctx[quant_bias], kPoint);
  const std::int64_t channels = moments.size(3) / 2;
  ctx[mean] = channels_first(ctx, moments.slice(3, 0, channels));
  const Tensor raw = channels_first(ctx, moments.slice(3, channels, 2 * channels));
  ctx[logvar] = ops::scale_clamp(ctx, raw, heddle_scale_clamp_attrs{1, 0, -30, 20});
}

}  // namespace heddle::vae
