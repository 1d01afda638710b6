#include "autoencoder_ltxv_blocks.h"

#include <algorithm>
#include <limits>

#include <heddle/ops.hpp>

#include "plugins/blocks/wide.h"

namespace heddle::vae {
namespace {

constexpr std::int64_t kLtxvSide = 4;  // pixels along each side of a cell
constexpr heddle_conv2d_attrs kLtxvPoint{{1, 1}, {0, 0, 0, 0}};

// A filter over three frames.
struct LtxvFilter {
  Tensor first, second, third, bias;
  bool is_causal = false;
  std::int64_t stride = 1;  // of frames, rows and columns
};

template <class B>
LtxvFilter ltxv_filter(Context& ctx, bool is_causal, std::int64_t stride = 1) {
  return {ctx[B::first], ctx[B::second], ctx[B::third], ctx[B::bias], is_causal, stride};
}

// One frame of x (T, H, W, C), by the filter whose first part reads the frame `at`, plus `base`
// where that is given. The three parts are summed in f32 and rounded once. A frame at a time, so
// that sums take little room.
void ltxv_frame_into(Context& ctx, const Tensor& x, std::int64_t at, const LtxvFilter& filter,
                     const Tensor& base, const Tensor& out) {
  const auto step = std::int32_t(filter.stride);
  const heddle_conv2d_attrs attrs{{step, step}, {1, 1, 1, 1}};
  Tensor sum = base;
  if (sum && sum.dtype() != HEDDLE_F32) sum = ops::cast(ctx, sum, HEDDLE_F32);
  const Tensor* const parts[] = {&filter.first, &filter.second, &filter.third};
  for (std::int64_t i = 0; i < 3; ++i) {
    const std::int64_t frame = std::clamp<std::int64_t>(at + i, 0, x.size(0) - 1);
    const Tensor seen = x.slice(0, frame, frame + 1);
    const bool is_last = i == 2;
    const Tensor made = is_last && out.dtype() == HEDDLE_F32
                            ? out
                            : ctx.make(ops::conv2d_shape(seen, *parts[i], attrs), HEDDLE_F32);
    ops::conv2d_into(ctx, seen, *parts[i], is_last ? filter.bias : Tensor(), attrs, sum, made);
    sum = made;
  }
  if (out.dtype() != HEDDLE_F32) ops::copy_into(ctx, sum, out);
}

// x (B, T, H, W, C) -> (B, T', H', W', C').
Tensor ltxv_convolved(Context& ctx, const Tensor& x, const LtxvFilter& filter, heddle_dtype dtype,
                      const Tensor& base = {}) {
  const auto halved = [&](std::int64_t size) { return (size - 1) / filter.stride + 1; };
  const std::int64_t frames = halved(x.size(1)), height = halved(x.size(2)),
                     width = halved(x.size(3)), channels = filter.third.size(0);
  const Tensor out = ctx.make({x.size(0), frames, height, width, channels}, dtype);
  const auto item = [](const Tensor& of, std::int64_t i) {
    return of.slice(0, i, i + 1).reshape({of.size(1), of.size(2), of.size(3), of.size(4)});
  };
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    const Tensor from = item(x, i), to = item(out, i), beside = base ? item(base, i) : Tensor();
    for (std::int64_t t = 0; t < frames; ++t)
      ltxv_frame_into(ctx, from, t * filter.stride - (filter.is_causal ? 2 : 1), filter,
                      beside ? beside.slice(0, t, t + 1) : Tensor(), to.slice(0, t, t + 1));
  }
  return out;
}

Tensor ltxv_activated(Context& ctx, const Tensor& x, double eps) {
  const Tensor out = ops::rms_norm(ctx, x, {}, eps);
  ops::activate_into(ctx, out, HEDDLE_ACT_SILU, out);
  return out;
}

// Frames as items of a batch, and back.
Tensor ltxv_pictures(const Tensor& x) {
  return x.reshape({x.size(0) * x.size(1), x.size(2), x.size(3), x.size(4)});
}

// (C) over the channels of (B, F, h, w, C).
Tensor ltxv_by_channel(const Tensor& numbers) {
  return numbers.reshape({1, 1, 1, 1, numbers.count()});
}

}  // namespace

void LtxvVaeLatentIn::execute(Context& ctx) {
  Tensor given = ctx[z];
  if (given.rank() == 4)
    given = given.reshape({given.size(0), given.size(1), 1, given.size(2), given.size(3)});
  if (given.size(1) != ctx[third].size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT, "the autoencoder decodes latents of " +
                                             std::to_string(ctx[third].size(1)) +
                                             " channels, got " + std::to_string(given.size(1)) +
                                             ". Load the autoencoder that belongs to the model.");
  const Tensor scaled = ops::cast(ctx, given.permute({0, 2, 3, 4, 1}), HEDDLE_F32);
  ops::mul_into(ctx, scaled, ltxv_by_channel(ctx[deviation]), scaled);
  const Tensor raw = ctx.make(scaled.shape());
  ops::add_into(ctx, scaled, ltxv_by_channel(ctx[mean]), raw);
  ctx[out] = ltxv_convolved(ctx, raw, ltxv_filter<LtxvVaeLatentIn>(ctx, false), ctx.compute());
}

void LtxvVaeImageIn::execute(Context& ctx) {
  const Tensor pixels = ctx[image];
  const std::int64_t frames = pixels.size(0), colours = pixels.size(3),
                     height = pixels.size(1) / kLtxvSide, width = pixels.size(2) / kLtxvSide,
                     cell = colours * kLtxvSide * kLtxvSide;
  if (cell != ctx[third].size(1) || pixels.size(1) % kLtxvSide != 0 ||
      pixels.size(2) % kLtxvSide != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the encoder takes pictures of " +
                    std::to_string(ctx[third].size(1) / (kLtxvSide * kLtxvSide)) +
                    " colours whose sides are multiples of 4, got " + std::to_string(colours) +
                    " colours, " + std::to_string(pixels.size(2)) + " x " +
                    std::to_string(pixels.size(1)) + " pixels");
  // Of a cell's numbers the colour is the slowest, then the column, then the row.
  const Tensor cells = ctx.make({1, frames, height, width, cell});
  ops::copy_into(ctx, pixels.reshape({frames, height, kLtxvSide, width, kLtxvSide, colours}),
                 cells.reshape({frames, height, width, colours, kLtxvSide, kLtxvSide})
                     .permute({0, 1, 5, 2, 4, 3}));
  ctx[out] = ltxv_convolved(ctx, cells, ltxv_filter<LtxvVaeImageIn>(ctx, true), ctx.compute());
}

void LtxvVaeResnet::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const LtxvFilter one{ctx[first1], ctx[second1], ctx[third1], ctx[bias1], ctx[causal]},
      two{ctx[first2], ctx[second2], ctx[third2], ctx[bias2], ctx[causal]};
  const Tensor middle = ltxv_convolved(ctx, ltxv_activated(ctx, x, ctx[eps]), one, ctx.compute());
  Tensor base = x;
  if (ctx[shortcut]) {
    const Tensor normed = ops::layer_norm(ctx, x, ctx[norm], ctx[norm_bias], ctx[shortcut_eps]);
    base = ops::conv2d(ctx, ltxv_pictures(normed), ctx[shortcut], ctx[shortcut_bias], kLtxvPoint)
               .reshape(middle.shape());
  }
  ctx[out] = ltxv_convolved(ctx, ltxv_activated(ctx, middle, ctx[eps]), two, ctx.compute(), base);
}

void LtxvVaeUpsample::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Tensor cubes =
      ltxv_convolved(ctx, x, ltxv_filter<LtxvVaeUpsample>(ctx, false), ctx.compute());
  const std::int64_t batch = x.size(0), frames = x.size(1), height = x.size(2), width = x.size(3),
                     channels = cubes.size(4) / 8;
  const Tensor whole = ctx.make({batch, 2 * frames - 1, 2 * height, 2 * width, channels});
  // Frame by frame, as the first is left out.
  for (std::int64_t t = 1; t < 2 * frames; ++t)
    for (std::int64_t i = 0; i < batch; ++i) {
      const Tensor from = cubes.slice(0, i, i + 1)
                              .slice(1, t / 2, t / 2 + 1)
                              .reshape({height, width, channels, 2, 2, 2})
                              .slice(3, t % 2, t % 2 + 1);
      const Tensor to = whole.slice(0, i, i + 1)
                            .slice(1, t - 1, t)
                            .reshape({height, 2, width, 2, channels, 1})
                            .permute({0, 2, 4, 5, 1, 3});
      ops::copy_into(ctx, from, to);
    }
  ctx[out] = whole;
}

void LtxvVaeDownsample::execute(Context& ctx) {
  ctx[out] =
      ltxv_convolved(ctx, ctx[hidden], ltxv_filter<LtxvVaeDownsample>(ctx, true, 2), ctx.compute());
}

void LtxvVaeImageOut::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Tensor cells = ltxv_convolved(ctx, ltxv_activated(ctx, x, ctx[eps]),
                                      ltxv_filter<LtxvVaeImageOut>(ctx, false), HEDDLE_F32);
  const std::int64_t frames = x.size(0) * x.size(1), height = x.size(2), width = x.size(3),
                     colours = cells.size(4) / (kLtxvSide * kLtxvSide);
  const Tensor made =
      ctx.make({frames, height * kLtxvSide, width * kLtxvSide, colours}, HEDDLE_F32);
  ops::copy_into(ctx,
                 cells.reshape({frames, height, width, colours, kLtxvSide, kLtxvSide})
                     .permute({0, 1, 5, 2, 4, 3}),
                 made.reshape({frames, height, kLtxvSide, width, kLtxvSide, colours}));
  ctx[image] = made;
}

void LtxvVaeLatentOut::execute(Context& ctx) {
  constexpr double kUnbound = std::numeric_limits<double>::infinity();
  const Tensor x = ctx[hidden];
  const Tensor moments = ltxv_convolved(ctx, ltxv_activated(ctx, x, ctx[eps]),
                                        ltxv_filter<LtxvVaeLatentOut>(ctx, true), HEDDLE_F32);
  const std::int64_t channels = ctx[mean].count();
  // (z - mean) / deviation. There is no division: 1 / d is 1 / sqrt(d * d), d > 0.
  const Tensor known = ops::cast(ctx, ctx[mean], HEDDLE_F32),
               deviations = ops::cast(ctx, ctx[deviation], HEDDLE_F32),
               inverse = ops::rsqrt(ctx, ops::mul(ctx, deviations, deviations));
  const Tensor offset =
      ops::scale_clamp(ctx, known, heddle_scale_clamp_attrs{-1, 0, -kUnbound, kUnbound});
  const Tensor moved = ctx.make({x.size(0), x.size(1), x.size(2), x.size(3), channels}, HEDDLE_F32);
  ops::add_into(ctx, moments.slice(4, 0, channels), ltxv_by_channel(offset), moved);
  ops::mul_into(ctx, moved, ltxv_by_channel(inverse), moved);
  ctx[out] = ops::contiguous(ctx, moved.permute({0, 4, 1, 2, 3}));
  ctx[logvar] =
      ops::contiguous(ctx, moments.slice(4, channels, channels + 1).permute({0, 4, 1, 2, 3}));
}

}  // namespace heddle::vae
