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

// c', the frame, the row i and the column j of what a number becomes are one index: each channel of
// `from` has as many of these in a row as it is repeated.
void WanUpShortcut::execute(Context& ctx) {
  const Tensor made = ctx[hidden], x = ctx[from];
  const std::int64_t batch = x.size(0), height = x.size(1), width = x.size(2),
                     channels = made.size(3), parts = x.size(3) / channels, time = ctx[frames],
                     repeats = 4 * time / parts, first = ctx[whole] ? 0 : time - 1;
  const Tensor larger = ctx.make(made.shape());
  const Tensor numbers = x.reshape({batch, height, width, channels, parts});
  for (std::int64_t frame = first; frame < time; ++frame) {
    const Tensor cells = larger.reshape({batch, time - first, height, 2, width, 2, channels})
                             .slice(1, frame - first, frame - first + 1);
    for (std::int64_t i = 0; i < 2; ++i)
      for (std::int64_t j = 0; j < 2; ++j) {
        const std::int64_t part = (4 * frame + 2 * i + j) / repeats;
        ops::copy_into(ctx,
                       numbers.slice(4, part, part + 1)
                           .permute({0, 4, 1, 2, 3})
                           .reshape({batch, 1, height, 1, width, 1, channels}),
                       cells.slice(3, i, i + 1).slice(5, j, j + 1));
      }
  }
  ctx[out] = ops::add(ctx, made, larger);
}

void WanDownShortcut::execute(Context& ctx) {
  const Tensor made = ctx[hidden];
  const std::int64_t height = made.size(1), width = made.size(2), channels = made.size(3),
                     step = ctx[size], time = ctx[frames];
  Tensor x = ctx[from];
  std::int64_t batch = x.size(0);
  const std::int64_t given = x.size(3), shared = given * time / channels;
  if (step == 2) {
    const Tensor cells = x.reshape({batch, height, 2, width, 2, given});
    std::vector<ops::Term> terms;
    for (const std::int64_t i : {0, 1})
      for (const std::int64_t j : {0, 1})
        terms.push_back({0.25, ops::contiguous(ctx, cells.slice(2, i, i + 1).slice(4, j, j + 1))
                                   .reshape({batch, height, width, given})});
    x = ops::combine(ctx, terms);
  }
  if (time > 1 && ctx[whole]) {
    batch /= time;
    const Tensor pairs = ctx.make({batch, height, width, given, time});
    ops::copy_into(ctx, x.reshape({batch, time, height, width, given}).permute({0, 2, 3, 4, 1}),
                   pairs);
    x = pairs.reshape({batch, height, width, given * time});
  } else if (time > 1) {
    const Tensor all = ctx.make({batch, height, width, given, time});
    ops::fill(ctx, all, 0);
    ops::copy_into(ctx, x.reshape({batch, height, width, given, 1}), all.slice(4, time - 1, time));
    x = all.reshape({batch, height, width, given * time});
  }
  Tensor sum = made;
  const Tensor groups = x.reshape({batch, height, width, channels, shared});
  for (std::int64_t k = 0; k < shared; ++k) {
    const Tensor one = ops::contiguous(ctx, groups.slice(4, k, k + 1)).reshape(made.shape());
    sum = ops::combine(ctx, {{1.0, sum}, {1.0 / double(shared), one}});
  }
  ctx[out] = sum;
}

void WanPatchIn::execute(Context& ctx) {
  const Tensor x = ctx[image];
  const std::int64_t batch = x.size(0), height = x.size(1) / 2, width = x.size(2) / 2,
                     channels = x.size(3);
  if (x.size(1) % 2 != 0 || x.size(2) % 2 != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, "pictures of " + std::to_string(x.size(2)) + "x" +
                                             std::to_string(x.size(1)) +
                                             " are no squares of two pixels a side");
  const Tensor squares = ctx.make({batch, height, width, 4 * channels}, x.dtype());
  ops::copy_into(ctx, x.reshape({batch, height, 2, width, 2, channels}).permute({0, 1, 3, 5, 4, 2}),
                 squares.reshape({batch, height, width, channels, 2, 2}));
  ctx[out] = squares;
}

void WanPatchOut::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const std::int64_t batch = x.size(0), height = x.size(1), width = x.size(2),
                     channels = x.size(3) / 4;
  const Tensor pixels = ctx.make({batch, 2 * height, 2 * width, channels}, x.dtype());
  ops::copy_into(
      ctx, x.reshape({batch, height, width, channels, 2, 2}),
      pixels.reshape({batch, height, 2, width, 2, channels}).permute({0, 1, 3, 5, 4, 2}));
  ctx[image] = pixels;
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
