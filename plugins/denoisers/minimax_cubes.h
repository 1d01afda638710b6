// plugins/denoisers/minimax_cubes.h - video sparse attention (VSA, arXiv 2505.13389), as ComfyUI
// has it for FastH3: a video's tokens lie in cubes of 4 x 4 x 4, the tokens before them in tiles
// of 64. A query of a cube sees all tokens before the video, its own cube, those next to it in
// order, and the share of all cubes whose mean keys score highest with the mean of its cube's
// queries; one before the video sees everything. A coarse branch besides is attention over the
// means of all tiles and cubes.
//
// Made of ops that every device has: which cubes are seen follows from numbers, how many from
// shapes. match_rows/1 of scores with one column gives the highest of them, embedding/1 fetches
// their keys and values, and attention/1 takes each cube's queries as an item of its batch. Heads
// are made longer by a few elements, of which one takes a key off that is not to be seen: where a
// cube hangs over the video's edge, or was fetched twice. Of equal scores the first counts, where
// ComfyUI keeps all. Shapes: B batch, T tokens, P of them before the video, V of it, N cubes, M
// tiles before it, H heads of d. Used in blocks, as they are traced; any thread.
#pragma once

#include <array>
#include <cstdint>

#include <heddle/node.hpp>

namespace heddle::denoisers {

inline constexpr std::int64_t kCubeSide = 4, kCubeTokens = 64;

// The tokens along the axes of a video, and the cubes over them; those at the ends hang over.
struct CubeGrid {
  std::array<std::int64_t, 3> tokens;
  std::int64_t along(std::size_t axis) const { return (tokens[axis] + kCubeSide - 1) / kCubeSide; }
  std::int64_t cubes() const { return along(0) * along(1) * along(2); }
  std::int64_t count() const { return tokens[0] * tokens[1] * tokens[2]; }
};

// Where a video's tokens are, and what weighs them in means. `pools` (M, P) f32: of the tiles
// before it, a row each.
struct CubeTables {
  Tensor order;    // (64 N) i32: of each place of a cube the token there, or the next one inside
  Tensor places;   // (V) i32: of each token its place in `order`
  Tensor weights;  // (N, 1, 64) f32: 1 / its cube's count, outside of the video 0
  Tensor pools;
};
// `order`, `places` and `weights`. Throws where tokens cannot be counted in f32.
CubeTables cube_tables(Context& ctx, const CubeGrid& grid);

// Adds the tiles of tokens [begin, end) to pools from row `tile` on; how many there are.
std::int64_t add_tiles(Context& ctx, const Tensor& pools, std::int64_t tile, std::int64_t begin,
                       std::int64_t end);
constexpr std::int64_t tiles_of(std::int64_t tokens) {
  return (tokens + kCubeTokens - 1) / kCubeTokens;
}

// How many cubes score highest: the share of all, rounded, halves to even, but at least one and
// not all.
std::int64_t kept_cubes(std::int64_t cubes, double share);

struct CubeAttention {
  Tensor fine, coarse;  // (B, T, H, d); coarse: of each token that of its tile or cube
};
// Of q, k, v (B, T, H, d), the video last. `coarse`: whether that is asked for, too.
CubeAttention cube_attention(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v,
                             const CubeTables& tables, double share, bool coarse);

}  // namespace heddle::denoisers
