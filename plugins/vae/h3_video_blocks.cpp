#include "h3_video_blocks.h"

#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include <heddle/ops.hpp>

#include "plugins/blocks/wide.h"
#include "plugins/vae/ltxv_filter.h"

namespace heddle::vae {
namespace {

constexpr double kH3Unbound = std::numeric_limits<double>::infinity();
constexpr heddle_conv2d_attrs kH3Point{{1, 1}, {0, 0, 0, 0}};
constexpr std::int64_t kH3Side = 16, kH3Frames = 4, kH3Colours = 3;
// Pixels are in the units of ImageNet's statistics.
constexpr std::array<double, 3> kH3Mean{0.485, 0.456, 0.406}, kH3Deviation{0.229, 0.224, 0.225};

// (1, 1, 1, 3) f32.
template <class Number>
Tensor h3_by_colour(Context& ctx, Number&& number) {
  const Tensor made = ctx.make({1, 1, 1, kH3Colours}, HEDDLE_F32);
  for (std::int64_t c = 0; c < kH3Colours; ++c)
    ops::fill(ctx, made.slice(3, c, c + 1), number(std::size_t(c)));
  return made;
}

Tensor h3_with_frames(const Tensor& z) {
  return z.rank() != 4 ? z : z.reshape({z.size(0), z.size(1), 1, z.size(2), z.size(3)});
}

// The places of cells, (S, 3) from -1 to 1 along each axis, times two pi; behind them zeros.
Tensor h3_angles(Context& ctx, const std::array<std::int64_t, 3>& sizes, std::int64_t behind) {
  const std::int64_t cells = sizes[0] * sizes[1] * sizes[2];
  const Tensor ids = ctx.make({cells + behind, 3}, HEDDLE_F32),
               factors = ctx.make({1, 3}, HEDDLE_F32);
  const Tensor places = ids.slice(0, 0, cells);
  ops::grid_ids_into(ctx, {{sizes[0], sizes[1], sizes[2]}, {0.5, 0.5, 0.5}}, places);
  constexpr double kTurn = 2 * std::numbers::pi;
  for (int axis = 0; axis < 3; ++axis)
    ops::fill(ctx, factors.slice(1, axis, axis + 1), 2 * kTurn / double(sizes[std::size_t(axis)]));
  const Tensor scaled = ctx.make({cells, 3}, HEDDLE_F32);
  ops::mul_into(ctx, places, factors, scaled);
  ops::copy_into(ctx, ops::scale_clamp(ctx, scaled, {1, -kTurn, -kH3Unbound, kH3Unbound}), places);
  ops::fill(ctx, ids.slice(0, cells, cells + behind), 0);
  return ids;
}

// A head's elements as norm_rope/1 takes them: element i of the turned ones beside i + P, the rest
// in pairs behind them. Scores do not depend on the order.
struct H3HeadOrder {
  H3HeadOrder(std::int64_t head, std::int64_t turned)
      : unit(std::gcd(turned / 2, head)),
        all(head / unit),
        half(turned / 2 / unit),
        rest((all - 2 * half) / 2) {}
  std::int64_t unit, all, half, rest;  // numbers of units, but for `unit`
};

// from: the projections (B, S, 3 D). Queries, then keys: (2 B, S, H, d), normed and turned.
Tensor h3_turned(Context& ctx, const Tensor& from, bool by_head, std::int64_t head,
                 std::int64_t turned, const Tensor& cos, const Tensor& sin, double eps) {
  const H3HeadOrder order(head, turned);
  const std::int64_t items = from.size(0), tokens = from.size(1), heads = from.size(2) / 3 / head;
  const Tensor source = by_head ? from.reshape({items, tokens, heads, 3, order.all, order.unit, 1})
                                      .permute({3, 0, 1, 2, 4, 5, 6})
                                : from.reshape({items, tokens, 3, heads, order.all, order.unit, 1})
                                      .permute({2, 0, 1, 3, 4, 5, 6});
  const Tensor both = ctx.make({2, items, tokens, heads, order.all / 2, order.unit, 2});
  const auto put = [&](std::int64_t begin, std::int64_t count, std::int64_t at, std::int64_t slot) {
    if (count > 0)
      ops::copy_into(ctx, source.slice(0, 0, 2).slice(4, begin, begin + count),
                     both.slice(4, at, at + count).slice(6, slot, slot + 1));
  };
  put(0, order.half, 0, 0);
  put(order.half, order.half, 0, 1);
  put(2 * order.half, order.rest, order.half, 0);
  put(2 * order.half + order.rest, order.rest, order.half, 1);
  const Tensor ones = ctx.make({head}), views = both.reshape({2 * items, tokens, heads, head});
  ops::fill(ctx, ones, 1);
  ops::norm_rope_into(ctx, views, ones, cos, sin, eps, views);
  return views;
}

Tensor h3_values(Context& ctx, const Tensor& from, bool by_head, std::int64_t head) {
  const std::int64_t items = from.size(0), tokens = from.size(1), heads = from.size(2) / 3 / head;
  const Tensor v = by_head ? from.reshape({items, tokens, heads, 3, head}).slice(3, 2, 3)
                           : from.reshape({items, tokens, 3, heads, head}).slice(2, 2, 3);
  return ops::contiguous(ctx, v).reshape({items, tokens, heads, head});
}

Tensor h3_normed(Context& ctx, const Tensor& x, const Tensor& weight, double eps) {
  const Tensor out = ctx.make(x.shape());
  ops::rms_norm_into(ctx, x, weight, eps, out);
  return out;
}

// SiLU of x (1, T, H, W, C) in a norm of each frame's groups, in the compute type.
template <class B>
Tensor h3_activated(Context& ctx, const Tensor& x, const Weight& weight, const Weight& bias) {
  const auto groups = std::int32_t(std::int64_t(ctx[B::groups]));
  return ops::group_norm(ctx, ltxv_pictures(x), ctx[weight], ctx[bias],
                         {ctx[B::eps], groups, HEDDLE_ACT_SILU})
      .reshape(x.shape());
}

LtxvFilter h3_filter(const Tensor& weight, const Tensor& bias) {
  LtxvFilter filter{weight, bias};
  filter.is_causal = filter.mirrors = filter.begins_empty = true;
  return filter;
}

}  // namespace

void H3VaeLatentIn::execute(Context& ctx) {
  const Tensor given = h3_with_frames(ctx[z]), matrix = ctx[proj];
  if (given.size(1) != matrix.size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT, "the autoencoder decodes latents of " +
                                             std::to_string(matrix.size(1)) + " channels, got " +
                                             std::to_string(given.size(1)) +
                                             ". Load the autoencoder that belongs to the model.");
  const std::int64_t items = given.size(0), frames = given.size(2), height = given.size(3),
                     width = given.size(4), cells = frames * height * width,
                     kept = ctx[registers].size(1), channels = matrix.size(0);
  const Tensor rows = ops::cast(ctx, given.permute({0, 2, 3, 4, 1}), ctx.compute())
                          .reshape({items * frames, height, width, given.size(1)});
  const Tensor mixed = ops::conv2d(ctx, rows, ctx[quant], ctx[quant_bias], kH3Point);
  const Tensor tokens = ctx.make({items, cells + kept + 1, channels}, HEDDLE_F32);
  const Tensor seen = blocks::wide_linear(ctx, mixed.reshape({items, cells, given.size(1)}), matrix,
                                          ctx[proj_bias]);
  ops::copy_into(ctx, seen, tokens.slice(1, 0, cells));
  for (std::int64_t i = 0; i < items; ++i)
    ops::copy_into(ctx, ctx[registers], tokens.slice(0, i, i + 1).slice(1, cells, cells + kept));
  ops::fill(ctx, tokens.slice(1, cells + kept, cells + kept + 1), 0);
  ctx[out] = tokens;
  const auto axis = std::int32_t(std::int64_t(ctx[turned]) / 3);
  const auto [part_cos, part_sin] =
      ops::rope_table(ctx, h3_angles(ctx, {frames, height, width}, kept + 1),
                      heddle_rope_table_attrs{3, 0, {axis, axis, axis, 0}, ctx[theta]});
  const std::int64_t pairs = std::int64_t(ctx[head]) / 2, some = part_cos.size(1);
  const auto widened = [&](const Tensor& part, double rest) {
    const Tensor all = ctx.make({part.size(0), pairs}, HEDDLE_F32);
    ops::copy_into(ctx, part, all.slice(1, 0, some));
    if (some < pairs) ops::fill(ctx, all.slice(1, some, pairs), rest);
    return all;
  };
  ctx[cos] = widened(part_cos, 1);
  ctx[sin] = widened(part_sin, 0);
}

void H3VaeLayer::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const std::int64_t items = x.size(0), width = x.size(2), size = ctx[head];
  const Tensor all =
      ops::linear(ctx, h3_normed(ctx, x, ctx[norm1], ctx[eps]), ctx[qkv], ctx[qkv_bias]);
  const Tensor both =
      h3_turned(ctx, all, ctx[by_head], size, ctx[turned], ctx[cos], ctx[sin], ctx[eps]);
  const Tensor found =
      ops::attention(ctx, both.slice(0, 0, items), both.slice(0, items, 2 * items),
                     h3_values(ctx, all, ctx[by_head], size), {}, 1 / std::sqrt(double(size)));
  const auto by_channel = [&](const Tensor& numbers) {
    return ops::cast(ctx, numbers, HEDDLE_F32).reshape({1, 1, width});
  };
  const Tensor seen = ops::gated_add(
      ctx, x, by_channel(ctx[scale1]),
      blocks::wide_linear(ctx, found.reshape({items, x.size(1), found.size(2) * size}), ctx[proj],
                          ctx[proj_bias]));
  const Tensor raised =
      ops::linear(ctx, h3_normed(ctx, seen, ctx[norm2], ctx[eps]), ctx[up], ctx[up_bias]);
  const std::int64_t inner = raised.size(2) / 2;
  const Tensor active = ctx.make({items, x.size(1), inner});
  ops::gated_activation_into(ctx, raised.slice(2, 0, inner), raised.slice(2, inner, 2 * inner),
                             HEDDLE_ACT_SILU, active);
  ctx[out] = ops::gated_add(ctx, seen, by_channel(ctx[scale2]),
                            blocks::wide_linear(ctx, active, ctx[down], ctx[down_bias]));
}

void H3VaeImageOut::execute(Context& ctx) {
  const Tensor x = ctx[hidden], cells = h3_with_frames(ctx[z]);
  const std::int64_t items = x.size(0), frames = cells.size(2), height = cells.size(3),
                     width = cells.size(4), tokens = frames * height * width;
  const Tensor rows = ctx.make({items, tokens, x.size(2)});
  ops::layer_norm_into(ctx, x.slice(1, 0, tokens), ctx[norm], ctx[norm_bias], ctx[eps], rows);
  const Tensor pixels = blocks::wide_linear(ctx, rows, ctx[proj], ctx[proj_bias]);
  // Of a token's numbers the colour is the slowest, then the frame, the row and the column.
  const Tensor whole =
      ctx.make({items, frames, kH3Frames, height, kH3Side, width, kH3Side, kH3Colours}, HEDDLE_F32);
  ops::copy_into(
      ctx,
      pixels.reshape({items, frames, height, width, kH3Colours, kH3Frames, kH3Side, kH3Side})
          .permute({0, 1, 5, 2, 6, 3, 7, 4}),
      whole);
  const std::int64_t lost = kH3Frames - 1, made = frames * kH3Frames - lost;
  const Tensor pictures =
      whole.reshape({items, frames * kH3Frames, height * kH3Side, width * kH3Side, kH3Colours});
  const Tensor kept =
      ctx.make({items * made, height * kH3Side, width * kH3Side, kH3Colours}, HEDDLE_F32);
  for (std::int64_t i = 0; i < items; ++i)
    ops::copy_into(ctx,
                   pictures.slice(0, i, i + 1)
                       .slice(1, lost, lost + made)
                       .reshape({made, height * kH3Side, width * kH3Side, kH3Colours}),
                   kept.slice(0, i * made, (i + 1) * made));
  ops::mul_into(ctx, kept, h3_by_colour(ctx, [](std::size_t c) { return 2 * kH3Deviation[c]; }),
                kept);
  ops::add_into(ctx, kept, h3_by_colour(ctx, [](std::size_t c) { return 2 * kH3Mean[c] - 1; }),
                kept);
  ctx[image] = kept;
}

void H3VaeImageIn::execute(Context& ctx) {
  const Tensor pixels = ctx[image];
  if (pixels.size(3) != kH3Colours || pixels.size(1) % kH3Side != 0 ||
      pixels.size(2) % kH3Side != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the encoder takes pictures of 3 colours whose sides are multiples of 16, got " +
                    std::to_string(pixels.size(3)) + " colours, " + std::to_string(pixels.size(2)) +
                    " x " + std::to_string(pixels.size(1)) + " pixels");
  const Tensor scaled = ctx.make(pixels.shape(), HEDDLE_F32), units = ctx.make(pixels.shape());
  ops::mul_into(ctx, pixels, h3_by_colour(ctx, [](std::size_t c) { return 0.5 / kH3Deviation[c]; }),
                scaled);
  ops::add_into(
      ctx, scaled,
      h3_by_colour(ctx, [](std::size_t c) { return (0.5 - kH3Mean[c]) / kH3Deviation[c]; }), units);
  ctx[out] = ltxv_convolved(
      ctx, units.reshape({1, pixels.size(0), pixels.size(1), pixels.size(2), kH3Colours}),
      h3_filter(ctx[conv], ctx[bias]), ctx.compute());
}

void H3VaeResnet::execute(Context& ctx) {
  using B = H3VaeResnet;
  const Tensor x = ctx[hidden];
  const Tensor middle = ltxv_convolved(ctx, h3_activated<B>(ctx, x, norm1, norm1_bias),
                                       h3_filter(ctx[conv1], ctx[bias1]), ctx.compute());
  const Tensor base = ctx[shortcut] ? ops::conv2d(ctx, ltxv_pictures(x), ctx[shortcut],
                                                  ctx[shortcut_bias], kH3Point)
                                          .reshape(middle.shape())
                                    : x;
  ctx[out] = ltxv_convolved(ctx, h3_activated<B>(ctx, middle, norm2, norm2_bias),
                            h3_filter(ctx[conv2], ctx[bias2]), ctx.compute(), base);
}

void H3VaeDownsample::execute(Context& ctx) {
  LtxvFilter filter = h3_filter(ctx[conv], ctx[bias]);
  filter.stride = 2;
  filter.frame_stride = ctx[frames];
  filter.reads_on_behind = true;
  ctx[out] = ltxv_convolved(ctx, ctx[hidden], filter, ctx.compute());
}

void H3VaeLatentOut::execute(Context& ctx) {
  using B = H3VaeLatentOut;
  const Tensor x = ctx[hidden];
  const Tensor moments = ltxv_convolved(ctx, h3_activated<B>(ctx, x, norm, norm_bias),
                                        h3_filter(ctx[conv], ctx[bias]), ctx.compute());
  const Tensor mixed =
      blocks::wide_conv2d(ctx, ltxv_pictures(moments), ctx[quant], ctx[quant_bias], kH3Point)
          .reshape(moments.shape());
  const std::int64_t channels = mixed.size(4) / 2;
  const auto part = [&](std::int64_t begin) {
    return ops::contiguous(ctx, mixed.slice(4, begin, begin + channels).permute({0, 4, 1, 2, 3}));
  };
  ctx[mean] = part(0);
  ctx[logvar] = part(channels);
}

}  // namespace heddle::vae
