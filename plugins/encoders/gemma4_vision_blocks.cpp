#include "gemma4_vision_blocks.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "half_rotation.h"
#include "matrix_limits.h"
#include "patch_sums.h"
#include "plugins/blocks/heads.h"
#include "plugins/blocks/wide.h"

namespace heddle::encoders {
namespace {

constexpr double kNoLimit = MatrixLimits::kNone;

// Patches of a picture, down and to the right.
struct PatchGrid {
  std::int64_t rows, columns;
};
PatchGrid patches_of(const Tensor& picture, std::int64_t patch, std::int64_t merge) {
  const std::int64_t unit = patch * merge;
  if (picture.rank() != 4 || picture.size(0) != 1 || picture.size(3) != 3 ||
      picture.size(1) < unit || picture.size(2) < unit || picture.size(1) % unit != 0 ||
      picture.size(2) % unit != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "Gemma 4 reads a picture (1, height, width, 3) whose sides are multiples of " +
                    std::to_string(unit));
  return {picture.size(1) / patch, picture.size(2) / patch};
}

// The pixels of each patch, row after row: (1, S, 3 patch^2), in the compute type.
Tensor patch_pixels(Context& ctx, const Tensor& picture, const PatchGrid& grid,
                    std::int64_t patch) {
  const Tensor rows =
      ops::cast(ctx, picture, ctx.compute()).reshape({grid.rows, patch, grid.columns, 3 * patch});
  return ops::contiguous(ctx, rows.permute({0, 2, 1, 3}))
      .reshape({1, grid.rows * grid.columns, 3 * patch * patch});
}

// x (1, S, D) plus what stands for each column and each row: (columns, D) and (rows, D).
Tensor with_places(Context& ctx, const Tensor& x, const Tensor& columns, const Tensor& rows) {
  const std::int64_t width = x.size(2);
  const auto wide = [&](const Tensor& part, std::int64_t down, std::int64_t right) {
    return ops::cast(ctx, ops::contiguous(ctx, part), HEDDLE_F32).reshape({1, down, right, width});
  };
  const std::int64_t down = x.size(1) / columns.size(0), right = columns.size(0);
  const Tensor grid = ops::add(ctx, x.reshape({1, down, right, width}), wide(columns, 1, right));
  return ops::add(ctx, grid, wide(rows, down, 1)).reshape(x.shape());
}

void require_places(std::int64_t places, const PatchGrid& grid) {
  if (std::max(grid.rows, grid.columns) > places)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "a picture of " + std::to_string(grid.columns) + " x " + std::to_string(grid.rows) +
                    " patches is larger than the " + std::to_string(places) +
                    " places of Gemma 4's table. Give a smaller one.");
}

constexpr std::size_t kLimited = 7;  // matrices of a layer

Tensor plus_result(Context& ctx, const Tensor& x, const Tensor& made, const Weight& norm) {
  const Tensor normed = ctx.make(made.shape(), HEDDLE_F32);
  ops::rms_norm_into(ctx, made, ctx[norm], ctx[Gemma4VisionLayer::eps], normed);
  return ops::add(ctx, x, normed);
}

}  // namespace

void Gemma4VisionEmbed::execute(Context& ctx) {
  const PatchGrid grid = patches_of(ctx[picture], ctx[patch], ctx[merge]);
  const Tensor table = ctx[places];
  require_places(table.size(1), grid);
  const Tensor pixels = patch_pixels(ctx, ctx[picture], grid, ctx[patch]);
  const auto of = [&](std::int64_t axis, std::int64_t count) {
    return ops::contiguous(ctx, table.slice(0, axis, axis + 1).slice(1, 0, count))
        .reshape({count, table.size(2)});
  };
  ctx[out] = with_places(ctx, blocks::wide_linear(ctx, pixels, ctx[matrix], {}),
                         of(0, grid.columns), of(1, grid.rows));
}

void Gemma4VisionRope::execute(Context& ctx) {
  const PatchGrid grid = patches_of(ctx[picture], ctx[patch], ctx[merge]);
  const std::int64_t count = grid.rows * grid.columns;
  const Tensor places = ctx.make({count, 3}, HEDDLE_F32), ids = ctx.make({count, 2}, HEDDLE_F32);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{1, grid.rows, grid.columns}, {0, 0, 0}}, places);
  ops::copy_into(ctx, places.slice(1, 2, 3), ids.slice(1, 0, 1));
  ops::copy_into(ctx, places.slice(1, 1, 2), ids.slice(1, 1, 2));
  const auto half = checked_cast<std::int32_t>(ctx[head] / 2, "head");
  const auto [c, s] =
      ops::rope_table(ctx, ids, heddle_rope_table_attrs{2, 0, {half, half, 0, 0}, ctx[theta]});
  ctx[cos] = c;
  ctx[sin] = s;
}

void Gemma4VisionLayer::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const double epsilon = ctx[eps];
  const std::vector<MatrixLimits> all = limits_in(ctx[limits], kLimited);
  const Tensor normed = ops::rms_norm(ctx, x, ctx[norm1], epsilon);
  const std::int64_t heads = ctx[q].size(0) / ctx[q_norm].size(0);
  const Rotation rotation{ctx[cos], ctx[sin], epsilon, false, 0, 2};
  const Tensor queries =
                   rotated(ctx, limited(ctx, normed, ctx[q], all[0]), heads, ctx[q_norm], rotation),
               keys =
                   rotated(ctx, limited(ctx, normed, ctx[k], all[1]), heads, ctx[k_norm], rotation),
               values = ops::rms_norm(
                   ctx, blocks::split_heads(limited(ctx, normed, ctx[v], all[2]), heads), {},
                   epsilon);
  const Tensor seen = blocks::join_heads(ops::attention(ctx, queries, keys, values, {}, 1.0));
  const Tensor middle = plus_result(ctx, x, limited(ctx, seen, ctx[proj], all[3]), after1);
  const Tensor again = ops::rms_norm(ctx, middle, ctx[norm2], epsilon);
  const Tensor gates = limited(ctx, again, ctx[gate], all[4]),
               raised = limited(ctx, again, ctx[up], all[5]);
  const Tensor product = ctx.make(raised.shape());
  ops::gated_activation_into(ctx, gates, raised, HEDDLE_ACT_GELU_TANH, product);
  ctx[out] = plus_result(ctx, middle, limited(ctx, product, ctx[down], all[6]), after2);
}

void Gemma4VisionPool::execute(Context& ctx) {
  const std::int64_t side = ctx[merge];
  const PatchGrid grid = patches_of(ctx[picture], ctx[patch], side);
  const Tensor x = ctx[hidden];
  const std::int64_t width = x.size(2);
  Tensor means =
      ops::scale_clamp(ctx, patch_sums(ctx, x, grid.rows, grid.columns, side),
                       {std::sqrt(double(width)) / double(side * side), 0, -kNoLimit, kNoLimit});
  if (const Tensor less = ctx[mean]) {
    const auto wide = [&](const Tensor& row, double times) {
      return ops::scale_clamp(ctx, ops::cast(ctx, row, HEDDLE_F32).reshape({1, 1, width}),
                              {times, 0, -kNoLimit, kNoLimit});
    };
    means = ops::mul(ctx, ops::add(ctx, means, wide(less, -1)), wide(ctx[factor], 1));
  }
  ctx[out] = blocks::wide_linear(ctx, ops::rms_norm(ctx, means, {}, ctx[eps]), ctx[matrix], {});
}

void Gemma4PixelTokens::execute(Context& ctx) {
  const PatchGrid grid = patches_of(ctx[picture], ctx[patch], 1);
  const Tensor table = ctx[places];
  require_places(table.size(0), grid);
  const double epsilon = ctx[layer_eps];
  const Tensor raw = patch_pixels(ctx, ctx[picture], grid, ctx[patch]);
  const Tensor made =
      blocks::wide_linear(ctx, ops::layer_norm(ctx, raw, ctx[norm1], ctx[norm1_bias], epsilon),
                          ctx[pixels], ctx[pixels_bias]);
  const Tensor normed = ctx.make(made.shape(), HEDDLE_F32);
  ops::layer_norm_into(ctx, made, ctx[norm2], ctx[norm2_bias], epsilon, normed);
  const auto of = [&](std::int64_t axis, std::int64_t count) {
    return ops::contiguous(ctx, table.slice(0, 0, count).slice(1, axis, axis + 1))
        .reshape({count, table.size(2)});
  };
  const Tensor placed = with_places(ctx, normed, of(0, grid.columns), of(1, grid.rows));
  const Tensor last = ctx.make(placed.shape(), HEDDLE_F32);
  ops::layer_norm_into(ctx, placed, ctx[norm3], ctx[norm3_bias], epsilon, last);
  ctx[out] = blocks::wide_linear(ctx, ops::rms_norm(ctx, last, {}, ctx[eps]), ctx[matrix], {});
}

}  // namespace heddle::encoders
