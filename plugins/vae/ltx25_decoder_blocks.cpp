#include "ltx25_decoder_blocks.h"

#include <algorithm>
#include <limits>
#include <string>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "neighbour_attention.h"
#include "plugins/blocks/wide.h"

namespace heddle::vae {
namespace {

using L = Ltx25VaeLayer;

constexpr std::int64_t kMlpCells = 65536;  // that an MLP goes through at once
constexpr int kModulations = 7;

// Of one norm: what it is multiplied by, less 1, and what is added. Empty: nothing.
struct Ltx25Shift {
  Tensor scale, shift;  // (1, C) f32
};

// x (N, C) f32, normalised, in the compute type.
Tensor ltx25_normed(Context& ctx, const Tensor& x, const Weight& norm, const Ltx25Shift& told) {
  if (!told.scale) return ops::rms_norm(ctx, x, ctx[norm], ctx[L::eps]);
  const Tensor wide = ctx.make(x.shape(), HEDDLE_F32), out = ctx.make(x.shape());
  ops::rms_norm_into(ctx, x, ctx[norm], ctx[L::eps], wide);
  ops::mul_into(ctx, wide, told.scale, wide);
  ops::add_into(ctx, wide, told.shift, out);
  return out;
}

// Pairs of a head that turn with frame, row and column, as numbers of elements: a quarter with the
// frame, the rest in halves.
std::array<std::int64_t, 3> turning_elements(std::int64_t head) {
  std::int64_t frame = head / 4 / 2 * 2, side = (head - frame) / 2;
  if (side % 2 != 0) frame -= 2, side = (head - frame) / 2;
  return {frame, side, side};
}

// x (T, H, W, n d) -> (T, H, W, n, d), normalised and turned.
Tensor ltx25_turned(Context& ctx, const Tensor& x, const Weight& norm) {
  const std::int64_t head = ctx[norm].size(0), heads = x.size(3) / head, length = x.size(0),
                     height = x.size(1), width = x.size(2);
  const Tensor out =
      ops::rms_norm(ctx, x.reshape({length, height, width, heads, head}), ctx[norm], ctx[L::eps]);
  const auto parts = turning_elements(head);
  const Shape views[] = {{1, length, height * width * heads, head},
                         {length, height, width * heads, head},
                         {length * height, width, heads, head}};
  std::int64_t begin = 0;
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t end = begin + parts[std::size_t(axis)], count = views[axis][1];
    if (end == begin) continue;
    const Tensor grid = ctx.make({count, 3}, HEDDLE_F32);
    ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{count, 1, 1}, {0, 0, 0}}, grid);
    const auto [cos, sin] = ops::rope_table(
        ctx, ops::contiguous(ctx, grid.slice(1, 0, 1)),
        {1, 0, {checked_cast<std::int32_t>(end - begin, "a head"), 0, 0, 0}, ctx[L::theta]});
    const Tensor part = out.reshape(views[axis]).slice(3, begin, end);
    ops::norm_rope_into(ctx, part, {}, cos, sin, ctx[L::eps], part);
    begin = end;
  }
  return out;
}

// x (1, T, H, W, C) behind what is kept of the piece before.
Tensor ltx25_with_kept(Context& ctx, const Tensor& x, const Tensor& kept) {
  if (!kept) return x;
  const std::int64_t first = kept.size(1), count = x.size(1);
  const Tensor all = ctx.make({1, first + count, x.size(2), x.size(3), x.size(4)}, HEDDLE_F32);
  ops::copy_into(ctx, kept, all.slice(1, 0, first));
  ops::copy_into(ctx, x, all.slice(1, first, first + count));
  return all;
}
Tensor ltx25_last_frames(Context& ctx, const Tensor& x, std::int64_t count) {
  return ops::contiguous(ctx, x.slice(1, x.size(1) - count, x.size(1)));
}

// x (T, H, W, C) f32, of one video, with what its cells see: those frames that are made.
Tensor ltx25_seen(Context& ctx, const Tensor& x, const Ltx25Shift& told) {
  const std::int64_t cells = x.size(0) * x.size(1) * x.size(2), width = x.size(3),
                     head = ctx[L::q_norm].size(0);
  const Tensor flat = x.reshape({cells, width}),
               all = ops::linear(ctx, ltx25_normed(ctx, flat, L::norm1, told), ctx[L::qkv],
                                 ctx[L::qkv_bias]);
  const Shape by_cell{x.size(0), x.size(1), x.size(2), width};
  const std::int64_t begin = ctx[L::before], end = x.size(0) - ctx[L::behind],
                     of_frame = x.size(1) * x.size(2);
  const auto part = [&](int n) {
    return ops::contiguous(ctx, all.slice(1, n * width, (n + 1) * width)).reshape(by_cell);
  };
  const Tensor seen =
      attended_by_neighbours(ctx, ltx25_turned(ctx, part(0), L::q_norm).slice(0, begin, end),
                             ltx25_turned(ctx, part(1), L::k_norm),
                             part(2).reshape({x.size(0), x.size(1), x.size(2), width / head, head}),
                             {ctx[L::frames], ctx[L::rows], ctx[L::columns]}, begin);
  return blocks::wide_linear(ctx, seen.reshape({(end - begin) * of_frame, width}), ctx[L::proj],
                             ctx[L::proj_bias], HEDDLE_ACT_NONE,
                             flat.slice(0, begin * of_frame, end * of_frame));
}

// x (N, C) f32 with what the MLP adds.
Tensor ltx25_mlp(Context& ctx, const Tensor& x, const Ltx25Shift& told) {
  const std::int64_t cells = x.size(0), inner = ctx[L::up].size(0) / 2;
  const Tensor out = ctx.make(x.shape(), HEDDLE_F32);
  for (std::int64_t begin = 0; begin < cells; begin += kMlpCells) {
    const std::int64_t end = std::min(cells, begin + kMlpCells);
    const Tensor some = x.slice(0, begin, end),
                 both = ops::linear(ctx, ltx25_normed(ctx, some, L::norm2, told), ctx[L::up], {});
    const Tensor raised = ops::gated_activation(ctx, ops::contiguous(ctx, both.slice(1, 0, inner)),
                                                both.slice(1, inner, 2 * inner), HEDDLE_ACT_SILU);
    ops::linear_into(ctx, raised, ctx[L::down], {}, HEDDLE_ACT_NONE, some,
                     out.slice(0, begin, end));
  }
  return out;
}

// given (B, T, H, W, C), video by video.
void ltx25_layer(Context& ctx, const Tensor& given, const Ltx25Shift& first,
                 const Ltx25Shift& second) {
  const Tensor x = ltx25_with_kept(ctx, given, ctx.has(L::kept) ? ctx[L::kept] : Tensor());
  const std::int64_t count = x.size(1) - ctx[L::before] - ctx[L::behind];
  if (count < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT, "a piece of " + std::to_string(x.size(1)) +
                                             " frames is too short for a layer that makes its "
                                             "frames late");
  const Shape one{x.size(1), x.size(2), x.size(3), x.size(4)},
      made{count, x.size(2), x.size(3), x.size(4)};
  const Tensor out = ctx.make({x.size(0), count, made[1], made[2], made[3]}, HEDDLE_F32);
  for (std::int64_t item = 0; item < x.size(0); ++item) {
    const Tensor seen = ltx25_seen(ctx, x.slice(0, item, item + 1).reshape(one), first);
    ops::copy_into(ctx, ltx25_mlp(ctx, seen, second).reshape(made),
                   out.slice(0, item, item + 1).reshape(made));
  }
  ctx[L::out] = out;
  ctx[L::keeps] = ltx25_last_frames(ctx, x, std::max<std::int64_t>(1, ctx[L::keep]));
}

Tensor with_bias_in_f32(Context& ctx, const Tensor& x, const Weight& weight, const Weight& bias) {
  return blocks::wide_linear(ctx, ops::cast(ctx, x, ctx.compute()), ctx[weight], ctx[bias]);
}

}  // namespace

void Ltx25LatentIn::execute(Context& ctx) {
  Tensor given = ctx[z];
  if (given.rank() == 4)
    given = given.reshape({given.size(0), given.size(1), 1, given.size(2), given.size(3)});
  const std::int64_t channels = ctx[weight].size(1), count = given.size(2);
  if (given.size(1) != channels)
    throw Error(HEDDLE_INVALID_ARGUMENT, "the autoencoder decodes latents of " +
                                             std::to_string(channels) + " channels, got " +
                                             std::to_string(given.size(1)) +
                                             ". Load the autoencoder that belongs to the model.");
  const Tensor scaled = ops::cast(ctx, given.permute({0, 2, 3, 4, 1}), HEDDLE_F32);
  const auto by_channel = [&](const Weight& numbers) {
    return ctx[numbers].reshape({1, 1, 1, 1, channels});
  };
  ops::mul_into(ctx, scaled, by_channel(deviation), scaled);
  const Shape longer{scaled.size(0), count + ctx[more], scaled.size(2), scaled.size(3), channels};
  const Tensor all = ctx.make(longer);
  ops::add_into(ctx, scaled, by_channel(mean), all.slice(1, 0, count));
  for (std::int64_t at = count; at < longer[1]; ++at)
    ops::copy_into(ctx, all.slice(1, count - 1, count), all.slice(1, at, at + 1));
  ctx[out] = blocks::wide_linear(ctx, all, ctx[weight], ctx[bias]);
}

void Ltx25VaeLayer::execute(Context& ctx) { ltx25_layer(ctx, ctx[hidden], {}, {}); }

void Ltx25PixelLayer::execute(Context& ctx) {
  const Tensor x = ctx[L::hidden];
  const std::int64_t width = x.size(4);
  const Tensor told = ctx.make({kModulations, width}, HEDDLE_F32);
  ops::add_into(ctx, ctx[mod].reshape({kModulations, width}), ctx[table], told);
  const auto shift = [&](std::int64_t row) {
    const Tensor scale = told.slice(0, row, row + 1);
    constexpr double kAny = std::numeric_limits<double>::infinity();
    ops::scale_clamp_into(ctx, scale, {1, 1, -kAny, kAny}, scale);
    return Ltx25Shift{scale, told.slice(0, row + 1, row + 2)};
  };
  const Tensor seen =
      ops::add(ctx, with_bias_in_f32(ctx, ctx[context], context_weight, context_bias), x);
  ltx25_layer(ctx, seen, shift(0), shift(3));
}

void Ltx25VaeDelay::execute(Context& ctx) {
  const Tensor all = ltx25_with_kept(ctx, ctx[piece], ctx.has(kept) ? ctx[kept] : Tensor());
  ctx[out] = ops::contiguous(ctx, all.slice(1, 0, all.size(1) - ctx[late]));
  ctx[keeps] = ltx25_last_frames(ctx, all, std::max<std::int64_t>(1, ctx[late]));
}

void Ltx25VaeUpsample::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const std::int64_t items = x.size(0), length = x.size(1), height = x.size(2), width = x.size(3),
                     t = ctx[frames], h = ctx[rows], w = ctx[columns],
                     channels = ctx[weight].size(0) / (t * h * w), all = length * t,
                     first = t == 2 && ctx[begins] ? 1 : 0, count = all - first - ctx[fewer];
  if (count < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT, "a latent of " + std::to_string(length) +
                                             " frames is too short for this autoencoder");
  const Tensor wide = with_bias_in_f32(ctx, x, weight, bias),
               made = ctx.make({items, all, height * h, width * w, channels}, HEDDLE_F32);
  for (std::int64_t item = 0; item < items; ++item)
    ops::copy_into(
        ctx,
        wide.slice(0, item, item + 1)
            .reshape({length, height, width, channels, t, h, w})
            .permute({0, 4, 1, 5, 2, 6, 3}),
        made.slice(0, item, item + 1).reshape({length, t, height, h, width, w, channels}));
  ctx[out] = count == all ? made : ops::contiguous(ctx, made.slice(1, first, first + count));
}

void Ltx25VaeLevel::execute(Context& ctx) {
  const Tensor t = ctx.make({1}, HEDDLE_F32), matrix = ctx[in],
               waves = ctx.make({1, matrix.size(1)}, HEDDLE_F32);
  ops::fill(ctx, t, ctx[level]);
  ops::timestep_embedding_into(ctx, t, {1, 10000, 0, 1, 0}, waves);
  const Tensor raised =
      ops::linear(ctx, ops::cast(ctx, waves, ctx.compute()), matrix, ctx[in_bias], HEDDLE_ACT_SILU);
  const Tensor told = ops::linear(ctx, raised, ctx[middle], ctx[middle_bias], HEDDLE_ACT_SILU);
  ctx[out] = blocks::wide_linear(ctx, told, ctx[last], ctx[last_bias]).reshape({ctx[last].size(0)});
}

void Ltx25NoiseIn::execute(Context& ctx) {
  const Tensor given = ctx[noise], shape = ctx[context];
  for (int axis = 0; axis < 4; ++axis)
    if (given.size(axis) != shape.size(axis))
      throw Error(HEDDLE_INVALID_ARGUMENT, "the decoder takes noise of " +
                                               std::to_string(shape.size(axis)) + " along axis " +
                                               std::to_string(axis) + ", got " +
                                               std::to_string(given.size(axis)));
  ctx[out] = with_bias_in_f32(ctx, given, weight, bias);
}

void Ltx25ImageOut::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const std::int64_t count = x.size(0) * x.size(1), height = x.size(2), width = x.size(3),
                     s = ctx[side], colours = ctx[weight].size(0) / (s * s);
  const Tensor cells =
      blocks::wide_linear(ctx, ops::rms_norm(ctx, x, ctx[norm], ctx[eps]), ctx[weight], ctx[bias]);
  const Tensor image = ctx.make({count, height * s, width * s, colours}, HEDDLE_F32);
  // A cell has columns of rows of each colour.
  ops::copy_into(ctx,
                 cells.reshape({count, height, width, colours, s, s}).permute({0, 1, 5, 2, 4, 3}),
                 image.reshape({count, height, s, width, s, colours}));
  ctx[out] = image;
}

}  // namespace heddle::vae
