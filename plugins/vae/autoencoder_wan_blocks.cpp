#include "autoencoder_wan_blocks.h"

#include <cmath>

#include <heddle/ops.hpp>

#include "plugins/blocks/wide.h"

namespace heddle::vae {
namespace {

constexpr heddle_conv2d_attrs kWanPoint{{1, 1}, {0, 0, 0, 0}};  // 1x1
constexpr heddle_conv2d_attrs kWanSame{{1, 1}, {1, 1, 1, 1}};   // 3x3 that keeps the size
// PyTorch's normalize() divides by the length, but by no less than 1e-12.
constexpr double kWanEps = 1e-24;

// Files have the norm's weight as (C, 1, 1) or (C, 1, 1, 1).
Tensor normed(Context& ctx, const Tensor& x, const Tensor& weight) {
  return ops::rms_norm(ctx, x, weight.reshape({x.size(3)}), kWanEps);
}

Tensor activated(Context& ctx, const Tensor& x, const Tensor& weight) {
  const Tensor out = normed(ctx, x, weight);
  ops::activate_into(ctx, out, HEDDLE_ACT_SILU, out);
  return out;
}

// Activations (B, h, w, C) as (B, C, h, w) f32.
Tensor planes(Context& ctx, const Tensor& x) {
  return ops::cast(ctx, x.permute({0, 3, 1, 2}), HEDDLE_F32);
}

}  // namespace

void WanResnet::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Tensor first =
      ops::conv2d(ctx, activated(ctx, x, ctx[norm1]), ctx[conv1], ctx[conv1_bias], kWanSame);
  const Tensor base =
      ctx[shortcut] ? ops::conv2d(ctx, x, ctx[shortcut], ctx[shortcut_bias], kWanPoint) : x;
  ctx[out] = ops::conv2d(ctx, activated(ctx, first, ctx[norm2]), ctx[conv2], ctx[conv2_bias],
                         kWanSame, base);
}

void WanAttention::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const std::int64_t batch = x.size(0), height = x.size(1), width = x.size(2), channels = x.size(3);
  const Tensor projected =
      ops::conv2d(ctx, normed(ctx, x, ctx[norm]), ctx[qkv], ctx[qkv_bias], kWanPoint);
  const Tensor rows = projected.reshape({batch, height * width, 1, 3 * channels});
  const auto third = [&](int i) { return rows.slice(3, i * channels, (i + 1) * channels); };
  const Tensor seen =
      ops::attention(ctx, third(0), third(1), third(2), {}, 1 / std::sqrt(double(channels)));
  ctx[out] = ops::conv2d(ctx, seen.reshape({batch, height, width, channels}), ctx[proj],
                         ctx[proj_bias], kWanPoint, x);
}

void WanImageOut::execute(Context& ctx) {
  ctx[image] = blocks::wide_conv2d(ctx, activated(ctx, ctx[hidden], ctx[norm]), ctx[conv],
                                   ctx[conv_bias], kWanSame);
}

void WanLatentOut::execute(Context& ctx) {
  const Tensor last =
      ops::conv2d(ctx, activated(ctx, ctx[hidden], ctx[norm]), ctx[conv], ctx[conv_bias], kWanSame);
  const Tensor moments = ops::conv2d(ctx, last, ctx[quant], ctx[quant_bias], kWanPoint);
  const std::int64_t channels = moments.size(3) / 2;
  ctx[mean] = planes(ctx, moments.slice(3, 0, channels));
  const Tensor raw = planes(ctx, moments.slice(3, channels, 2 * channels));
  ctx[logvar] = ops::scale_clamp(ctx, raw, heddle_scale_clamp_attrs{1, 0, -30, 20});
}

}  // namespace heddle::vae
