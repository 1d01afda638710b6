#include "sound_blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <heddle/batch_ops.hpp>
#include <heddle/ops.hpp>

#include "plugins/blocks/heads.h"
#include "plugins/blocks/wide.h"

namespace heddle::encoders {
namespace {

constexpr double kAnyNumber = std::numeric_limits<float>::max();

Tensor wide_norm(Context& ctx, const Tensor& x, const Weight& weight, const Weight& bias,
                 double eps) {
  const Tensor normed = ctx.make(x.shape(), HEDDLE_F32);
  ops::layer_norm_into(ctx, x, ctx[weight], ctx[bias], eps, normed);
  return normed;
}

// x (B, T, C) by a filter (O, C, K), with zeros around as many as told: (B, T', O) f32.
Tensor filtered_sound(Context& ctx, const Tensor& x, const Tensor& filter, const Tensor& bias,
                      std::int64_t step, std::int64_t around) {
  const std::int64_t items = x.size(0), channels = x.size(2), taps = filter.size(2),
                     length = x.size(1) + 2 * around;
  if (length < taps)
    throw Error(HEDDLE_INVALID_ARGUMENT, "a sound of " + std::to_string(length) +
                                             " points before a filter of " + std::to_string(taps) +
                                             ". Give a longer sound.");
  const std::int64_t made = (length - taps) / step + 1;
  // As whole steps, so that every step'th point is a column.
  const std::int64_t steps = made + (taps - 1) / step;
  const Tensor wide = ctx.make({items, std::max(steps * step, length), channels});
  if (around > 0) ops::fill(ctx, wide.slice(1, 0, around), 0);
  ops::copy_into(ctx, x, wide.slice(1, around, around + x.size(1)));
  if (const std::int64_t end = around + x.size(1); end < wide.size(1))
    ops::fill(ctx, wide.slice(1, end, wide.size(1)), 0);
  const Tensor rows = ctx.make({items, made, taps * channels});
  const Tensor whole =
      ops::contiguous(ctx, wide.slice(1, 0, steps * step)).reshape({items, steps, step, channels});
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    const std::int64_t from = tap / step, column = tap % step;
    ops::copy_into(
        ctx, whole.slice(1, from, from + made).slice(2, column, column + 1),
        rows.slice(2, tap * channels, (tap + 1) * channels).reshape({items, made, 1, channels}));
  }
  const Tensor matrix = ops::cast(ctx, filter.permute({2, 1, 0}), ctx.compute())
                            .reshape({1, taps * channels, filter.size(0)});
  const Tensor out = ops::batched_product(ctx, rows.reshape({1, items * made, taps * channels}),
                                          matrix, HEDDLE_F32)
                         .reshape({items, made, filter.size(0)});
  if (bias) ops::add_into(ctx, out, bias.reshape({1, 1, filter.size(0)}), out);
  return out;
}

// A filter (D, D / groups, K) whose taps have these lengths, as (groups, K D / groups, D / groups)
// in the compute type.
Tensor grouped_taps(Context& ctx, const Tensor& filter, const Tensor& gain) {
  const std::int64_t width = filter.size(0), inner = filter.size(1), taps = filter.size(2),
                     each = width * inner, groups = width / inner;
  const Tensor rows = ops::cast(ctx, filter.permute({2, 0, 1}), HEDDLE_F32).reshape({taps, each});
  const Tensor normed = ctx.make({taps, each}, HEDDLE_F32);
  ops::rms_norm_into(ctx, rows, {}, 0, normed);
  const Tensor lengths =
      ops::scale_clamp(ctx, ops::cast(ctx, gain.reshape({taps, 1}), HEDDLE_F32),
                       {1 / std::sqrt(double(each)), 0, -kAnyNumber, kAnyNumber});
  ops::mul_into(ctx, normed, lengths, normed);
  return ops::cast(ctx, normed.reshape({taps, groups, inner, inner}).permute({1, 0, 3, 2}),
                   ctx.compute())
      .reshape({groups, taps * inner, inner});
}

}  // namespace

void SoundFilter::execute(Context& ctx) {
  Tensor x = ctx[hidden];
  if (x.rank() == 2) x = x.reshape({x.size(0), x.size(1), 1});
  const Tensor made = filtered_sound(ctx, x, ctx[filter], ctx[bias], ctx[stride], 0);
  const std::int64_t width = made.size(2);
  if (ctx[norm] && ctx[over_time]) {
    const Tensor normed =
        ops::group_norm(ctx, made.reshape({made.size(0), made.size(1), 1, width}), ctx[norm],
                        ctx[norm_bias], {ctx[eps], std::int32_t(width), HEDDLE_ACT_NONE});
    const Tensor active = ctx.make(made.shape(), HEDDLE_F32);
    ops::activate_into(ctx, normed.reshape(made.shape()), HEDDLE_ACT_GELU, active);
    ctx[out] = active;
    return;
  }
  const Tensor normed = ctx[norm] ? wide_norm(ctx, made, norm, norm_bias, ctx[eps]) : made;
  ops::activate_into(ctx, normed, HEDDLE_ACT_GELU, normed);
  ctx[out] = normed;
}

void SoundProject::execute(Context& ctx) {
  const Tensor normed = ops::layer_norm(ctx, ctx[hidden], ctx[norm], ctx[norm_bias], ctx[eps]);
  ctx[out] = blocks::wide_linear(ctx, normed, ctx[proj], ctx[proj_bias]);
}

void SoundPlaces::execute(Context& ctx) {
  const Tensor x = ctx[hidden], taps = grouped_taps(ctx, ctx[filter], ctx[gain]);
  const std::int64_t items = x.size(0), length = x.size(1), width = x.size(2),
                     groups = taps.size(0), inner = taps.size(2), count = taps.size(1) / inner,
                     before = count / 2, parts = (length + count - 1) / count;
  // Blocks of as many points as the filter has taps: what a point at the same place in each block
  // reads is a row of the same points in a row.
  const std::int64_t room = (parts + 1) * count;
  const Tensor wide = ctx.make({items, room, width});
  ops::fill(ctx, wide, 0);
  ops::copy_into(ctx, x, wide.slice(1, before, before + length));
  const Tensor by_group =
      ops::contiguous(ctx, wide.reshape({items, room, groups, inner}).permute({0, 2, 1, 3}));
  const Tensor made = ctx.make({items, groups, parts, count, inner}, HEDDLE_F32);
  for (std::int64_t item = 0; item < items; ++item) {
    const Tensor one = by_group.slice(0, item, item + 1).reshape({groups, room, inner});
    for (std::int64_t place = 0; place < count; ++place) {
      const Tensor rows = ops::contiguous(ctx, one.slice(1, place, place + parts * count))
                              .reshape({groups, parts, count * inner});
      ops::copy_into(
          ctx,
          ops::batched_product(ctx, rows, taps, HEDDLE_F32).reshape({1, groups, parts, 1, inner}),
          made.slice(0, item, item + 1).slice(3, place, place + 1));
    }
  }
  const Tensor sum = ctx.make({items, parts * count, width}, HEDDLE_F32);
  ops::copy_into(ctx, made.permute({0, 2, 3, 1, 4}),
                 sum.reshape({items, parts, count, groups, inner}));
  ops::add_into(ctx, sum, ctx[bias].reshape({1, 1, width}), sum);
  ops::activate_into(ctx, sum, HEDDLE_ACT_GELU, sum);
  const Tensor added = ctx.make(x.shape(), HEDDLE_F32);
  ops::add_into(ctx, x, sum.slice(1, 0, length), added);
  ctx[out] = ctx[norm] ? wide_norm(ctx, added, norm, norm_bias, ctx[eps]) : added;
}

void SpectrumFilters::execute(Context& ctx) {
  const Tensor table = ctx[positions];
  const Tensor raised = filtered_sound(ctx, ctx[spectrum], ctx[first], ctx[first_bias], 1, 1);
  ops::activate_into(ctx, raised, HEDDLE_ACT_GELU, raised);
  const Tensor made = filtered_sound(ctx, raised, ctx[second], ctx[second_bias], 2, 1);
  ops::activate_into(ctx, made, HEDDLE_ACT_GELU, made);
  if (made.size(1) > table.size(0))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "a spectrum of " + std::to_string(made.size(1)) + " points, and positions of " +
                    std::to_string(table.size(0)) + ". Give a shorter sound.");
  const Tensor placed = ctx.make(made.shape(), HEDDLE_F32);
  ops::add_into(ctx, made, table.slice(0, 0, made.size(1)).reshape({1, made.size(1), made.size(2)}),
                placed);
  ctx[out] = placed;
}

void SoundLayer::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const bool after = ctx[norms_after];
  const std::int64_t count = ctx[heads];
  const double e = ctx[eps], scale = 1 / std::sqrt(double(x.size(2) / count));
  const auto narrow_norm = [&](const Tensor& of, const Weight& weight, const Weight& bias) {
    return ops::layer_norm(ctx, of, ctx[weight], ctx[bias], e);
  };
  const auto heads_of = [&](const Tensor& of, const Weight& matrix, const Weight& bias) {
    return blocks::split_heads(ops::linear(ctx, of, ctx[matrix], ctx[bias]), count);
  };
  const Tensor asked = after ? ops::cast(ctx, x, ctx.compute()) : narrow_norm(x, norm1, norm1_bias);
  const Tensor seen = ops::attention(ctx, heads_of(asked, q, q_bias), heads_of(asked, k, k_bias),
                                     heads_of(asked, v, v_bias), {}, scale);
  Tensor first = blocks::wide_linear(ctx, blocks::join_heads(seen), ctx[proj], ctx[proj_bias],
                                     HEDDLE_ACT_NONE, x);
  if (after) first = wide_norm(ctx, first, norm1, norm1_bias, e);
  const Tensor read =
      after ? ops::cast(ctx, first, ctx.compute()) : narrow_norm(first, norm2, norm2_bias);
  const Tensor raised = ops::linear(ctx, read, ctx[up], ctx[up_bias], HEDDLE_ACT_GELU);
  const Tensor second =
      blocks::wide_linear(ctx, raised, ctx[down], ctx[down_bias], HEDDLE_ACT_NONE, first);
  ctx[out] = after ? wide_norm(ctx, second, norm2, norm2_bias, e) : second;
}

void SoundFinish::execute(Context& ctx) {
  ctx[out] = wide_norm(ctx, ctx[hidden], norm, norm_bias, ctx[eps]);
}

}  // namespace heddle::encoders
