#include "sam3_trunk_blocks.h"

#include <algorithm>
#include <cmath>

#include <heddle/checked.hpp>

#include "plugins/blocks/heads.h"
#include "plugins/blocks/wide.h"
#include "wide_math.h"

namespace heddle::detection {
namespace {

constexpr double kRotationBase = 10000;

// The table of places (n n, D) side by side over a grid of that size: (1, height, width, D).
Tensor covered(Context& ctx, const Tensor& table, std::int64_t height, std::int64_t width) {
  const auto side = std::int64_t(std::llround(std::sqrt(double(table.size(0)))));
  const Tensor square = table.reshape({1, side, side, table.size(1)});
  const Tensor out = ctx.make({1, height, width, table.size(1)}, HEDDLE_F32);
  for (std::int64_t top = 0; top < height; top += side)
    for (std::int64_t left = 0; left < width; left += side) {
      const std::int64_t rows = std::min(side, height - top),
                         columns = std::min(side, width - left);
      ops::copy_into(ctx, square.slice(1, 0, rows).slice(2, 0, columns),
                     out.slice(1, top, top + rows).slice(2, left, left + columns));
    }
  return out;
}

// (B, H, W, D) -> (B H W / w^2, w w, D), window after window.
Tensor parted(Context& ctx, const Tensor& grid, std::int64_t w) {
  const std::int64_t items = grid.size(0), down = grid.size(1) / w, across = grid.size(2) / w,
                     width = grid.size(3);
  const Tensor out = ctx.make({items, down, across, w, w, width}, grid.dtype());
  ops::copy_into(ctx, grid.reshape({items, down, w, across, w, width}).permute({0, 1, 3, 2, 4, 5}),
                 out);
  return out.reshape({items * down * across, w * w, width});
}

// What parted() made, put together again: (B, H, W, D).
Tensor joined(Context& ctx, const Tensor& windows, const Shape& grid, std::int64_t w) {
  const std::int64_t down = grid[1] / w, across = grid[2] / w;
  const Tensor out = ctx.make(grid, windows.dtype());
  ops::copy_into(
      ctx, windows.reshape({grid[0], down, across, w, w, grid[3]}).permute({0, 1, 3, 2, 4, 5}),
      out.reshape({grid[0], down, w, across, w, grid[3]}));
  return out;
}

}  // namespace

void Sam3Embed::execute(Context& ctx) {
  const Tensor pixels = ctx[picture], filter = ctx[patches], table = ctx[places];
  const auto step = checked_cast<std::int32_t>(filter.size(2), "patch");
  if (pixels.rank() != 4 || pixels.size(3) != filter.size(1) || pixels.size(1) % step != 0 ||
      pixels.size(2) % step != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "SAM 3 sees pictures (batch, height, width, " + std::to_string(filter.size(1)) +
                    ") with sides of multiples of " + std::to_string(step) + " pixels.");
  const Tensor grid = blocks::wide_conv2d(ctx, narrow(ctx, pixels), filter, {},
                                          heddle_conv2d_attrs{{step, step}, {0, 0, 0, 0}});
  const Tensor rows = table.reshape({table.size(1), table.size(2)}).slice(0, 1, table.size(1));
  const Tensor placed = sum(ctx, grid, covered(ctx, rows, grid.size(1), grid.size(2)));
  ctx[out] = normalised(ctx, placed, ctx[norm], ctx[norm_bias], ctx[eps]);
}

void Sam3Rotation::execute(Context& ctx) {
  const std::int64_t count = ctx[side];
  const Tensor places = ctx.make({count * count, 3}, HEDDLE_F32),
               ids = ctx.make({count * count, 2}, HEDDLE_F32);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{1, count, count}, {0, 0, 0}}, places);
  for (int axis = 0; axis < 2; ++axis)  // columns, then rows
    ops::scale_clamp_into(ctx, places.slice(1, 2 - axis, 3 - axis), {ctx[step], 0, 0, 1e6},
                          ids.slice(1, axis, axis + 1));
  const auto half = checked_cast<std::int32_t>(ctx[head] / 2, "head");
  const auto [c, s] =
      ops::rope_table(ctx, ids, heddle_rope_table_attrs{2, 0, {half, half}, kRotationBase});
  ctx[cosines] = c;
  ctx[sines] = s;
}

void Sam3Layer::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Shape grid = x.shape();
  const std::int64_t width = grid[3], head_count = ctx[heads], w = ctx[window];
  const Tensor normed = ops::layer_norm(ctx, x, ctx[norm1], ctx[norm1_bias], ctx[eps]);
  const Tensor tokens =
      w > 0 ? parted(ctx, normed, w) : normed.reshape({grid[0], grid[1] * grid[2], width});
  const Tensor projected = ops::linear(ctx, tokens, ctx[qkv], ctx[qkv_bias]);
  const auto third = [&](int i) {
    return blocks::split_heads(projected.slice(2, i * width, (i + 1) * width), head_count);
  };
  const auto turned = [&](const Tensor& from) {
    const Tensor to = ctx.make(from.shape());
    ops::norm_rope_into(ctx, from, {}, ctx[cosines], ctx[sines], 0, to);
    return to;
  };
  const double scale = 1 / std::sqrt(double(width / head_count));
  const Tensor attended = blocks::join_heads(
      ops::attention(ctx, turned(third(0)), turned(third(1)), third(2), {}, scale));
  const Tensor whole = w > 0 ? joined(ctx, attended, grid, w) : attended.reshape(grid);
  const Tensor middle =
      blocks::wide_linear(ctx, whole, ctx[proj], ctx[proj_bias], HEDDLE_ACT_NONE, x);
  const Tensor inner = ops::layer_norm(ctx, middle, ctx[norm2], ctx[norm2_bias], ctx[eps]);
  const Tensor raised = ops::linear(ctx, inner, ctx[up], ctx[up_bias], HEDDLE_ACT_GELU);
  ctx[out] = blocks::wide_linear(ctx, raised, ctx[down], ctx[down_bias], HEDDLE_ACT_NONE, middle);
}

void Sam3Level::execute(Context& ctx) {
  Tensor grid = ctx[hidden];
  if (ctx[first]) grid = doubled(ctx, grid, ctx[first], ctx[first_bias]);
  if (ctx[second]) {
    ops::activate_into(ctx, grid, HEDDLE_ACT_GELU, grid);
    grid = doubled(ctx, grid, ctx[second], ctx[second_bias]);
  }
  ctx[out] =
      convolved(ctx, convolved(ctx, grid, ctx[point], ctx[point_bias]), ctx[conv], ctx[conv_bias]);
}

}  // namespace heddle::detection
