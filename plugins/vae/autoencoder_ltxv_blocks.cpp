#include "autoencoder_ltxv_blocks.h"

#include <limits>

#include <heddle/ops.hpp>

#include "ltxv_filter.h"
#include "plugins/blocks/wide.h"

namespace heddle::vae {
namespace {

constexpr double kLtxvUnbound = std::numeric_limits<double>::infinity();
constexpr std::int64_t kLtxvSide = 4;  // pixels along each side of a cell
constexpr heddle_conv2d_attrs kLtxvPoint{{1, 1}, {0, 0, 0, 0}};

// (C) over the channels of (B, F, h, w, C).
Tensor ltxv_by_channel(const Tensor& numbers) {
  return numbers.reshape({1, 1, 1, 1, numbers.count()});
}

// x (B, T, H, W, C) plus plane (H, W) times a number for each channel.
Tensor ltxv_with_noise(Context& ctx, const Tensor& x, const Tensor& plane, const Tensor& numbers) {
  const Tensor added = ctx.make({1, 1, x.size(2), x.size(3), x.size(4)}, HEDDLE_F32);
  ops::mul_into(ctx, plane.reshape({1, 1, x.size(2), x.size(3), 1}), ltxv_by_channel(numbers),
                added);
  ops::add_into(ctx, x, added, x);
  return x;
}

}  // namespace

void LtxvVaeLatentIn::execute(Context& ctx) {
  const auto with_frames = [](const Tensor& x) {
    return x.rank() != 4 ? x : x.reshape({x.size(0), x.size(1), 1, x.size(2), x.size(3)});
  };
  const Tensor given = with_frames(ctx[z]);
  if (given.size(1) != ctx[conv].size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT, "the autoencoder decodes latents of " +
                                             std::to_string(ctx[conv].size(1)) + " channels, got " +
                                             std::to_string(given.size(1)) +
                                             ". Load the autoencoder that belongs to the model.");
  Tensor scaled = ops::cast(ctx, given.permute({0, 2, 3, 4, 1}), HEDDLE_F32);
  if (ctx.has(noise)) {
    const Tensor drawn =
        ops::cast(ctx, with_frames(ctx[noise]).permute({0, 2, 3, 4, 1}), HEDDLE_F32);
    const double share = ctx[noise_share];
    scaled = ops::combine(ctx, {{1 - share, scaled}, {share, drawn}});
  }
  ops::mul_into(ctx, scaled, ltxv_by_channel(ctx[deviation]), scaled);
  const Tensor raw = ctx.make(scaled.shape());
  ops::add_into(ctx, scaled, ltxv_by_channel(ctx[mean]), raw);
  ctx[out] =
      ltxv_convolved(ctx, raw, ltxv_filter<LtxvVaeLatentIn>(ctx, ctx[causal]), ctx.compute());
}

void LtxvVaeImageIn::execute(Context& ctx) {
  const Tensor pixels = ctx[image];
  const std::int64_t frames = pixels.size(0), colours = pixels.size(3),
                     height = pixels.size(1) / kLtxvSide, width = pixels.size(2) / kLtxvSide,
                     cell = colours * kLtxvSide * kLtxvSide;
  if (cell != ctx[conv].size(1) || pixels.size(1) % kLtxvSide != 0 ||
      pixels.size(2) % kLtxvSide != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the encoder takes pictures of " +
                    std::to_string(ctx[conv].size(1) / (kLtxvSide * kLtxvSide)) +
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
  const Tensor x = ctx[hidden], seen = ctx.has(embedding) ? ctx[embedding] : Tensor();
  const bool is_causal = ctx[causal], has_mirrors = ctx[mirrors];
  const LtxvFilter one{ctx[conv1], ctx[bias1], is_causal, has_mirrors},
      two{ctx[conv2], ctx[bias2], is_causal, has_mirrors};
  const auto with_noise = [&](const Tensor& made, std::int64_t nth, const Weight& numbers) {
    if (!ctx.has(noise)) return made;
    const std::int64_t at = ctx[plane] + nth;
    return ltxv_with_noise(ctx, made, ctx[noise].slice(0, at, at + 1), ctx[numbers]);
  };
  const LtxvModulation by1 = ltxv_modulation(ctx, seen, ctx[table], 0),
                       by2 = ltxv_modulation(ctx, seen, ctx[table], 1);
  const Tensor middle = with_noise(
      ltxv_convolved(ctx, ltxv_activated(ctx, x, ctx[eps], by1), one, ctx.compute()), 0, scale1);
  Tensor base = x;
  if (ctx[shortcut]) {
    const Tensor normed = ops::layer_norm(ctx, x, ctx[norm], ctx[norm_bias], ctx[shortcut_eps]);
    base = ops::conv2d(ctx, ltxv_pictures(normed), ctx[shortcut], ctx[shortcut_bias], kLtxvPoint)
               .reshape(middle.shape());
  }
  ctx[out] = with_noise(
      ltxv_convolved(ctx, ltxv_activated(ctx, middle, ctx[eps], by2), two, ctx.compute(), base), 1,
      scale2);
}

void LtxvVaeHalf::execute(Context& ctx) {
  const Tensor x = ctx[hidden], seen = ctx.has(embedding) ? ctx[embedding] : Tensor();
  LtxvFilter filter{ctx[conv], ctx[bias], true, ctx[mirrors]};
  filter.has_neighbours = true;
  Tensor added;
  if (ctx.has(base)) {
    const std::int64_t begin = ctx[from];
    added = ctx[base].slice(1, begin, begin + x.size(1) - 2);
    if (ctx[shortcut]) {
      const Tensor normed = ops::layer_norm(ctx, ops::contiguous(ctx, added), ctx[norm],
                                            ctx[norm_bias], ctx[shortcut_eps]);
      const Tensor made =
          ops::conv2d(ctx, ltxv_pictures(normed), ctx[shortcut], ctx[shortcut_bias], kLtxvPoint);
      added = made.reshape({1, made.size(0), made.size(1), made.size(2), made.size(3)});
    }
  }
  const LtxvModulation by = ltxv_modulation(ctx, seen, ctx[table], ctx[nth]);
  const Tensor made =
      ltxv_convolved(ctx, ltxv_activated(ctx, x, ctx[eps], by), filter, ctx.compute(), added);
  ctx[out] =
      ctx.has(noise)
          ? ltxv_with_noise(ctx, made, ctx[noise].slice(0, ctx[plane], ctx[plane] + 1), ctx[scale])
          : made;
}

void LtxvVaeFrames::execute(Context& ctx) {
  const Tensor x = ctx[piece];
  const auto along = std::uint32_t(ctx[axis]);
  const Tensor earlier = ctx.has(kept) ? ctx[kept] : Tensor();
  const std::int64_t count = x.size(along), copies = ctx[behind],
                     first = earlier ? earlier.size(along) : ctx[before];
  Shape shape = x.shape();
  shape[along] = first + count + copies;
  const Tensor all = ctx.make(shape, x.dtype());
  const auto put = [&](const Tensor& frames, std::int64_t at) {
    ops::copy_into(ctx, frames, all.slice(along, at, at + frames.size(along)));
  };
  if (earlier)
    put(earlier, 0);
  else
    for (std::int64_t t = 0; t < first; ++t) put(x.slice(along, 0, 1), t);
  put(x, first);
  for (std::int64_t t = 0; t < copies; ++t)
    put(x.slice(along, count - 1, count), first + count + t);
  ctx[out] = all;
  const std::int64_t end = shape[along];
  ctx[keeps] = ops::contiguous(ctx, all.slice(along, end - ctx[keep], end));
}

void LtxvVaeTime::execute(Context& ctx) {
  const Tensor t = ctx.make({1}, HEDDLE_F32), matrix = ctx[in];
  ops::fill(ctx, t, ctx[level]);
  const Tensor waves = ctx.make({1, matrix.size(1)}, HEDDLE_F32);
  ops::timestep_embedding_into(ctx, t, {ctx[scale], ctx[max_period], 0, 1, 0}, waves);
  const Tensor middle = blocks::wide_linear(ctx, waves, matrix, ctx[in_bias], HEDDLE_ACT_SILU);
  ctx[out] =
      blocks::wide_linear(ctx, middle, ctx[last], ctx[last_bias]).reshape({ctx[last].size(0)});
}

void LtxvVaeImageOut::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Tensor seen = ctx.has(embedding) ? ctx[embedding] : Tensor();
  const Tensor cells = ltxv_convolved(
      ctx, ltxv_activated(ctx, x, ctx[eps], ltxv_modulation(ctx, seen, ctx[table], 0)),
      ltxv_filter<LtxvVaeImageOut>(ctx, ctx[causal]), HEDDLE_F32);
  const std::int64_t frames = cells.size(0) * cells.size(1), height = x.size(2), width = x.size(3),
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
  const Tensor x = ctx[hidden];
  const Tensor moments = ltxv_convolved(ctx, ltxv_activated(ctx, x, ctx[eps]),
                                        ltxv_filter<LtxvVaeLatentOut>(ctx, true), HEDDLE_F32);
  const std::int64_t channels = ctx[mean].count();
  // (z - mean) / deviation. There is no division: 1 / d is 1 / sqrt(d * d), d > 0.
  const Tensor known = ops::cast(ctx, ctx[mean], HEDDLE_F32),
               deviations = ops::cast(ctx, ctx[deviation], HEDDLE_F32),
               inverse = ops::rsqrt(ctx, ops::mul(ctx, deviations, deviations));
  const Tensor offset =
      ops::scale_clamp(ctx, known, heddle_scale_clamp_attrs{-1, 0, -kLtxvUnbound, kLtxvUnbound});
  const Tensor moved =
      ctx.make({x.size(0), moments.size(1), x.size(2), x.size(3), channels}, HEDDLE_F32);
  ops::add_into(ctx, moments.slice(4, 0, channels), ltxv_by_channel(offset), moved);
  ops::mul_into(ctx, moved, ltxv_by_channel(inverse), moved);
  ctx[out] = ops::contiguous(ctx, moved.permute({0, 4, 1, 2, 3}));
  ctx[logvar] =
      ops::contiguous(ctx, moments.slice(4, channels, channels + 1).permute({0, 4, 1, 2, 3}));
}

}  // namespace heddle::vae
