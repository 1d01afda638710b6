#include "dino_blocks.h"

#include <cmath>

#include <heddle/checked.hpp>

#include "plugins/blocks/heads.h"
#include "plugins/blocks/wide.h"
#include "wide_math.h"

namespace heddle::detection {
namespace {

// The numbers of lines (V, K) that the taps name, in their shares: (N, K) f32.
Tensor lines_of(Context& ctx, const Tensor& lines, const LineTaps& taps) {
  const std::int64_t count = taps.ids.size(1);
  Tensor all;
  for (std::int64_t tap = 0; tap < taps.ids.size(0); ++tap) {
    const Tensor read =
        blocks::wide_embedding(ctx, lines, taps.ids.slice(0, tap, tap + 1).reshape({count}));
    ops::mul_into(ctx, read, taps.shares.slice(0, tap, tap + 1).reshape({count, 1}), read);
    if (all)
      ops::add_into(ctx, all, read, all);
    else
      all = read;
  }
  return all;
}

// 1 / x of x above 0, f32.
Tensor inverse_of(Context& ctx, const Tensor& x) {
  const Tensor root = ops::rsqrt(ctx, ops::cast(ctx, x, HEDDLE_F32));
  return ops::mul(ctx, root, root);
}

}  // namespace

Tensor resampled(Context& ctx, const Tensor& grid, const LineTaps& rows, const LineTaps& columns) {
  const std::int64_t items = grid.size(0), width = grid.size(2), channels = grid.size(3),
                     down = rows.ids.size(1), across = columns.ids.size(1);
  const Tensor out = ctx.make({items, down, across, channels}, HEDDLE_F32);
  for (std::int64_t item = 0; item < items; ++item) {
    const Tensor one = grid.slice(0, item, item + 1).reshape({grid.size(1), width * channels});
    const Tensor half = lines_of(ctx, one, rows).reshape({down, width, channels});
    const Tensor turned = ops::contiguous(ctx, half.permute({1, 0, 2}));
    const Tensor whole = lines_of(ctx, turned.reshape({width, down * channels}), columns)
                             .reshape({1, across, down, channels});
    ops::copy_into(ctx, whole.permute({0, 2, 1, 3}), out.slice(0, item, item + 1));
  }
  return out;
}

void DinoEmbed::execute(Context& ctx) {
  const Tensor pixels = ctx[picture], filter = ctx[patches], table = ctx[places];
  const auto step = checked_cast<std::int32_t>(filter.size(2), "patch");
  const std::int64_t items = pixels.size(0), rows = ctx[row_ids].size(1),
                     columns = ctx[column_ids].size(1), width = filter.size(0),
                     channels = filter.size(1);
  if (pixels.rank() != 4 || pixels.size(3) != channels || pixels.size(1) != rows * step ||
      pixels.size(2) != columns * step)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "DINOv2 sees pictures (batch, height, width, " + std::to_string(channels) +
                    "), here of " + std::to_string(rows) + " x " + std::to_string(columns) +
                    " squares of " + std::to_string(step) + " pixels a side.");
  const Shape of_channels{1, 1, 1, channels};
  const Tensor factor = inverse_of(ctx, ctx[deviation]).reshape(of_channels),
               shift = ops::mul(ctx, ops::cast(ctx, ctx[mean], HEDDLE_F32).reshape(of_channels),
                                factor);
  const Tensor even = ctx.make(pixels.shape(), HEDDLE_F32);
  ops::mul_into(ctx, pixels, factor, even);
  ops::add_into(ctx, even, ops::scale_clamp(ctx, shift, {-1, 0, -1e6, 1e6}), even);
  const Tensor grid = blocks::wide_conv2d(ctx, narrow(ctx, even), filter, ctx[patches_bias],
                                          heddle_conv2d_attrs{{step, step}, {0, 0, 0, 0}});
  const auto side = std::int64_t(std::llround(std::sqrt(double(table.size(1) - 1))));
  const Tensor all = table.reshape({table.size(1), width});
  const Tensor placed =
      resampled(ctx, all.slice(0, 1, all.size(0)).reshape({1, side, side, width}),
                {ctx[row_ids], ctx[row_shares]}, {ctx[column_ids], ctx[column_shares]});
  const Tensor hidden = ctx.make({items, 1 + rows * columns, width}, HEDDLE_F32);
  ops::add_into(ctx, grid.reshape({items, rows * columns, width}),
                placed.reshape({1, rows * columns, width}), hidden.slice(1, 1, 1 + rows * columns));
  const Tensor first =
      sum(ctx, ctx[class_token].reshape({1, 1, width}), all.slice(0, 0, 1).reshape({1, 1, width}));
  for (std::int64_t item = 0; item < items; ++item)
    ops::copy_into(ctx, first, hidden.slice(0, item, item + 1).slice(1, 0, 1));
  ctx[out] = hidden;
}

void DinoLayer::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const std::int64_t width = x.size(2), head_count = ctx[heads];
  const auto normed = [&](const Tensor& from, const Weight& weight, const Weight& bias) {
    const Tensor to = ctx.make(from.shape());
    ops::layer_norm_into(ctx, from, ctx[weight], ctx[bias], ctx[eps], to);
    return to;
  };
  // x + scale * matrix of made.
  const auto added = [&](const Tensor& to, const Tensor& made, const Weight& matrix,
                         const Weight& bias, const Weight& scale) {
    const Tensor change = blocks::wide_linear(ctx, made, ctx[matrix], ctx[bias]);
    ops::mul_into(ctx, change, ctx[scale].reshape({1, 1, width}), change);
    ops::add_into(ctx, change, to, change);
    return change;
  };
  const Tensor projected = ops::linear(ctx, normed(x, norm1, norm1_bias), ctx[qkv], ctx[qkv_bias]);
  const auto third = [&](int i) {
    return blocks::split_heads(projected.slice(2, i * width, (i + 1) * width), head_count);
  };
  const Tensor attended = blocks::join_heads(ops::attention(
      ctx, third(0), third(1), third(2), {}, 1 / std::sqrt(double(width / head_count))));
  const Tensor middle = added(x, attended, proj, proj_bias, scale1);
  const Tensor inner = normed(middle, norm2, norm2_bias);
  Tensor raised;
  if (ctx[gated]) {
    const Tensor both = ops::linear(ctx, inner, ctx[up], ctx[up_bias]);
    const std::int64_t half = both.size(2) / 2;
    raised = ops::gated_activation(ctx, both.slice(2, 0, half), both.slice(2, half, 2 * half),
                                   HEDDLE_ACT_SILU);
  } else {
    raised = ops::linear(ctx, inner, ctx[up], ctx[up_bias], HEDDLE_ACT_GELU);
  }
  ctx[out] = added(middle, raised, down, down_bias, scale2);
}

void DinoProject::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const std::int64_t items = x.size(0), rows = ctx[row_ids].size(1),
                     columns = ctx[column_ids].size(1);
  const Tensor normed = ctx.make({items, rows * columns, x.size(2)});
  ops::layer_norm_into(ctx, x.slice(1, 1, x.size(1)), ctx[norm], ctx[norm_bias], ctx[eps], normed);
  const Tensor grid = normed.reshape({items, rows, columns, x.size(2)});
  const Tensor filter = ctx[point];
  const Tensor made = ctx.make({items, rows, columns, filter.size(0)}, HEDDLE_F32);
  ops::conv2d_into(ctx, grid, filter, ctx[point_bias], heddle_conv2d_attrs{{1, 1}, {0, 0, 0, 0}},
                   ctx.has(sum) ? ctx[sum] : Tensor(), made);
  ctx[out] = made;
}

}  // namespace heddle::detection
