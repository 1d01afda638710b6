// The tables of minimax_cubes.h: whole numbers in f32, cut to i32 at the end.
#include <algorithm>
#include <cmath>
#include <vector>

#include <heddle/ops.hpp>

#include "minimax_cubes.h"

namespace heddle::denoisers {
namespace {

constexpr std::int64_t kCountable = 1 << 24;  // whole numbers that f32 has

// Rows (of a grid) as they lie in cubes: (a, b, c, 4, 4, 4) of (4 a, 4 b, 4 c).
Tensor in_cubes(const Tensor& raster, const CubeGrid& grid) {
  return raster
      .reshape({grid.along(0), kCubeSide, grid.along(1), kCubeSide, grid.along(2), kCubeSide})
      .permute({0, 2, 4, 1, 3, 5});
}
Shape cube_shape(const CubeGrid& grid) {
  return {grid.along(0), grid.along(1), grid.along(2), kCubeSide, kCubeSide, kCubeSide};
}

Tensor counted(Context& ctx, std::int64_t count) {
  const Tensor ids = ctx.make({count, 3}, HEDDLE_F32), column = ctx.make({count, 1}, HEDDLE_F32);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{count, 1, 1}, {0, 0, 0}}, ids);
  ops::copy_into(ctx, ids.slice(1, 0, 1), column);
  return column.reshape({count});
}

Tensor cube_order(Context& ctx, const CubeGrid& grid) {
  std::int64_t sides[3];
  for (std::size_t axis = 0; axis < 3; ++axis) sides[axis] = grid.along(axis) * kCubeSide;
  const std::int64_t count = sides[0] * sides[1] * sides[2];
  const Tensor ids = ctx.make({count, 3}, HEDDLE_F32), raster = ctx.make({count, 1}, HEDDLE_F32);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{sides[0], sides[1], sides[2]}, {0, 0, 0}}, ids);
  Tensor axes[3];
  for (int axis = 0; axis < 3; ++axis) {
    axes[axis] = ids.slice(1, axis, axis + 1);
    ops::scale_clamp_into(
        ctx, axes[axis],
        heddle_scale_clamp_attrs{1, 0, 0, double(grid.tokens[std::size_t(axis)] - 1)}, axes[axis]);
  }
  ops::combine_into(ctx,
                    {{double(grid.tokens[1] * grid.tokens[2]), axes[0]},
                     {double(grid.tokens[2]), axes[1]},
                     {1, axes[2]}},
                    raster);
  const Tensor order = ctx.make({count}, HEDDLE_I32);
  ops::copy_into(ctx, in_cubes(raster.reshape({sides[0], sides[1], sides[2]}), grid),
                 order.reshape(cube_shape(grid)));
  return order;
}

Tensor cube_places(Context& ctx, const CubeGrid& grid) {
  const std::int64_t rows = grid.along(1) * kCubeSide, columns = grid.along(2) * kCubeSide;
  const Tensor raster = ctx.make({grid.along(0) * kCubeSide, rows, columns}, HEDDLE_F32);
  ops::copy_into(ctx, counted(ctx, grid.cubes() * kCubeTokens).reshape(cube_shape(grid)),
                 in_cubes(raster, grid));
  const Tensor places = ctx.make({grid.count()}, HEDDLE_I32);
  ops::copy_into(
      ctx,
      raster.slice(0, 0, grid.tokens[0]).slice(1, 0, grid.tokens[1]).slice(2, 0, grid.tokens[2]),
      places.reshape({grid.tokens[0], grid.tokens[1], grid.tokens[2]}));
  return places;
}

// Tokens along an axis whose cubes have as many of them along it.
struct CubePiece {
  std::int64_t begin, end, each;
};
std::vector<CubePiece> cube_pieces(std::int64_t tokens) {
  std::vector<CubePiece> pieces;
  const std::int64_t whole = tokens / kCubeSide * kCubeSide;
  if (whole > 0) pieces.push_back({0, whole, kCubeSide});
  if (whole < tokens) pieces.push_back({whole, tokens, tokens - whole});
  return pieces;
}

Tensor cube_weights(Context& ctx, const CubeGrid& grid) {
  const Tensor raster =
      ctx.make({grid.along(0) * kCubeSide, grid.along(1) * kCubeSide, grid.along(2) * kCubeSide},
               HEDDLE_F32);
  ops::fill(ctx, raster, 0);
  for (const CubePiece& a : cube_pieces(grid.tokens[0]))
    for (const CubePiece& b : cube_pieces(grid.tokens[1]))
      for (const CubePiece& c : cube_pieces(grid.tokens[2]))
        ops::fill(ctx,
                  raster.slice(0, a.begin, a.end).slice(1, b.begin, b.end).slice(2, c.begin, c.end),
                  1 / double(a.each * b.each * c.each));
  const Tensor weights = ctx.make({grid.cubes(), 1, kCubeTokens}, HEDDLE_F32);
  ops::copy_into(ctx, in_cubes(raster, grid), weights.reshape(cube_shape(grid)));
  return weights;
}

}  // namespace

CubeTables cube_tables(Context& ctx, const CubeGrid& grid) {
  if (grid.count() < 1 || grid.cubes() * kCubeTokens > kCountable)
    throw Error(HEDDLE_UNSUPPORTED, "sparse attention takes videos of 1 to " +
                                        std::to_string(kCountable) + " tokens, this one has " +
                                        std::to_string(grid.count()) +
                                        ". Draw a smaller one, or leave BlockSparseAttention out.");
  return {cube_order(ctx, grid), cube_places(ctx, grid), cube_weights(ctx, grid), {}};
}

std::int64_t add_tiles(Context& ctx, const Tensor& pools, std::int64_t tile, std::int64_t begin,
                       std::int64_t end) {
  const std::int64_t count = tiles_of(end - begin);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t first = begin + i * kCubeTokens, last = std::min(end, first + kCubeTokens);
    ops::fill(ctx, pools.slice(0, tile + i, tile + i + 1).slice(1, first, last),
              1 / double(last - first));
  }
  return count;
}

std::int64_t kept_cubes(std::int64_t cubes, double share) {
  if (cubes < 2) return 0;
  return std::clamp<std::int64_t>(std::llrint(share * double(cubes)), 1, cubes - 1);
}

}  // namespace heddle::denoisers
