// Large grids through a model by overlapping tiles, as ComfyUI's tiled scale: every tile counts
// less towards its edges, and the weighted sum is divided by the sum of the weights. Pictures and
// latents of autoencoders go through it three times with tiles of different shapes, whose results
// are averaged.
// Sums are in f32, in ComfyUI's order. Host memory; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory_resource>
#include <vector>

#include <heddle/node.hpp>

#include "plugins/blocks/resample.h"

namespace heddle::blocks {

// Of what goes in: a part of the grid, in its cells.
struct Tile {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
};

// The shape of tiles and how far neighbours overlap, in cells of what goes in.
struct Tiling {
  std::int64_t height = 0, width = 0, overlap = 0;
};

// The tiles of a grid, row by row; those at the end are as large as what is left. Throws
// HEDDLE_INVALID_ARGUMENT where the overlap leaves no step from one tile to the next.
std::vector<Tile> tiles_of(const GridSize& grid, const Tiling& tiling);

// How far a cell of what comes out is in cells of what goes in: 1 / 8 for a decoder, 8 for an
// encoder.
struct Ratio {
  std::int64_t in = 1, out = 1;
  // A length or a place of what goes in, among what comes out; half to even.
  std::int64_t of(std::int64_t cells) const {
    return rounded(double(cells) * double(out) / double(in));
  }
};

// One item of a batch: a grid that goes in, and what comes out of it.
struct TiledWork {
  GridSize in;
  Grids out;
  Ratio ratio;
  std::vector<Tiling> tilings;  // one or more, in the order in which their results are added
};

// How many tiles all passes have.
std::size_t tile_count(const TiledWork& work);

// Gives what the model makes of a tile: f32, in host memory until the next call, rows and columns
// where `out` has them.
struct MadeTile {
  const float* data = nullptr;
  GridSize size;
};
using MakeTile = std::function<MadeTile(const Tile&)>;

// Writes outer x height x width x inner numbers. Takes sums of their size from `memory`.
void mean_of_tiles(const TiledWork& work, const MakeTile& make, float* out,
                   std::pmr::memory_resource& memory);

// What mean_of_tiles() takes of `memory`, in bytes.
std::uint64_t tile_sum_bytes(const TiledWork& work);

}  // namespace heddle::blocks
