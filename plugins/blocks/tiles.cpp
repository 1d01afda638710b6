#include "plugins/blocks/tiles.h"

#include <algorithm>
#include <heddle/checked.hpp>
#include <string>

namespace heddle::blocks {
namespace {

std::vector<std::int64_t> starts(std::int64_t side, std::int64_t tile, std::int64_t overlap) {
  if (side <= tile) return {0};
  if (overlap >= tile)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "overlap: tiles with a side of " + std::to_string(tile) + " that overlap by " +
                    std::to_string(overlap) +
                    " never get on. Ask for a smaller overlap, at most a quarter of tile_size.");
  std::vector<std::int64_t> places;
  for (std::int64_t at = 0; at < side - overlap; at += tile - overlap) places.push_back(at);
  return places;
}

// The weights of a tile's cells. Weights fall off along rows first, then along columns: where both
// ends of a short tile fade, the products are rounded in this order.
class Feather {
 public:
  Feather(const GridSize& tile, std::int64_t width, std::pmr::memory_resource& memory)
      : size_(tile), weights_(std::size_t(tile.height * tile.width), 1.0f, &memory) {
    if (width < tile.height)
      for (std::int64_t t = 0; t < width; ++t)
        for (const std::int64_t y : {t, tile.height - 1 - t}) fade_row(y, factor(t, width));
    if (width < tile.width)
      for (std::int64_t t = 0; t < width; ++t)
        for (const std::int64_t x : {t, tile.width - 1 - t}) fade_column(x, factor(t, width));
  }
  const float* row(std::int64_t y) const { return weights_.data() + y * size_.width; }

 private:
  static float factor(std::int64_t t, std::int64_t width) {
    return float(double(t + 1) / double(width));
  }
  void fade_row(std::int64_t y, float by) {
    for (std::int64_t x = 0; x < size_.width; ++x) weights_[std::size_t(y * size_.width + x)] *= by;
  }
  void fade_column(std::int64_t x, float by) {
    for (std::int64_t y = 0; y < size_.height; ++y)
      weights_[std::size_t(y * size_.width + x)] *= by;
  }
  GridSize size_;
  std::pmr::vector<float> weights_;
};

// The sum of the tiles of one pass, and of their weights.
class Sum {
 public:
  Sum(const Grids& out, std::pmr::memory_resource& memory)
      : out_(out),
        memory_(memory),
        values_(std::size_t(out.outer * out.size.height * out.size.width * out.inner), &memory),
        weights_(std::size_t(out.size.height * out.size.width), &memory) {}

  void clear() {
    std::fill(values_.begin(), values_.end(), 0.0f);
    std::fill(weights_.begin(), weights_.end(), 0.0f);
  }

  void add(const MadeTile& tile, std::int64_t top, std::int64_t left, std::int64_t feather) {
    if (top + tile.size.height > out_.size.height || left + tile.size.width > out_.size.width)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "tile_size: a tile that gives " + std::to_string(tile.size.width) + " x " +
                      std::to_string(tile.size.height) + " cells at " + std::to_string(left) +
                      ", " + std::to_string(top) + " leaves the result of " +
                      std::to_string(out_.size.width) + " x " + std::to_string(out_.size.height) +
                      ". Ask for tiles and overlaps in multiples of 64.");
    const Feather weights(tile.size, feather, memory_);
    const float* value = tile.data;
    for (std::int64_t o = 0; o < out_.outer; ++o)
      for (std::int64_t y = 0; y < tile.size.height; ++y) {
        float* sum = values_.data() + cell(o, top + y, left) * out_.inner;
        const float* weight = weights.row(y);
        for (std::int64_t x = 0; x < tile.size.width; ++x)
          for (std::int64_t i = 0; i < out_.inner; ++i) *sum++ += *value++ * weight[x];
      }
    for (std::int64_t y = 0; y < tile.size.height; ++y)
      for (std::int64_t x = 0; x < tile.size.width; ++x)
        weights_[std::size_t(cell(0, top + y, left + x))] += weights.row(y)[x];
  }

  // The one tile of a pass that covers everything counts as it is.
  void set(const MadeTile& tile) {
    std::copy_n(tile.data, values_.size(), values_.begin());
    std::fill(weights_.begin(), weights_.end(), 1.0f);
  }

  template <class Take>
  void mean(Take&& take) const {
    const std::size_t cells = weights_.size(), inner = std::size_t(out_.inner);
    for (std::size_t i = 0; i < values_.size(); ++i)
      take(i, values_[i] / weights_[i / inner % cells]);
  }

 private:
  std::int64_t cell(std::int64_t outer, std::int64_t y, std::int64_t x) const {
    return (outer * out_.size.height + y) * out_.size.width + x;
  }
  Grids out_;
  std::pmr::memory_resource& memory_;
  std::pmr::vector<float> values_, weights_;
};

}  // namespace

std::vector<Tile> tiles_of(const GridSize& grid, const Tiling& tiling) {
  std::vector<Tile> tiles;
  const std::vector<std::int64_t> columns = starts(grid.width, tiling.width, tiling.overlap);
  for (const std::int64_t top : starts(grid.height, tiling.height, tiling.overlap))
    for (const std::int64_t left : columns)
      tiles.push_back({top, left, std::min(tiling.height, grid.height - top),
                       std::min(tiling.width, grid.width - left)});
  return tiles;
}

std::size_t tile_count(const TiledWork& work) {
  std::size_t count = 0;
  for (const Tiling& tiling : work.tilings) count += tiles_of(work.in, tiling).size();
  return count;
}

void mean_of_tiles(const TiledWork& work, const MakeTile& make, float* out,
                   std::pmr::memory_resource& memory) {
  Sum sum(work.out, memory);
  bool is_first = true;
  for (const Tiling& tiling : work.tilings) {
    const std::vector<Tile> tiles = tiles_of(work.in, tiling);
    if (tiles.size() == 1) {
      sum.set(make(tiles.front()));
    } else {
      sum.clear();
      for (const Tile& tile : tiles)
        sum.add(make(tile), work.ratio.of(tile.top), work.ratio.of(tile.left),
                work.ratio.of(tiling.overlap));
    }
    sum.mean([&](std::size_t i, float value) { out[i] = is_first ? value : out[i] + value; });
    is_first = false;
  }
  const std::int64_t count =
      work.out.outer * work.out.size.height * work.out.size.width * work.out.inner;
  for (std::int64_t i = 0; i < count; ++i) out[i] /= float(work.tilings.size());
}

std::uint64_t tile_sum_bytes(const TiledWork& work) {
  const GridSize& size = work.out.size;
  const std::int64_t cells = checked_product({size.height, size.width}, "the sum of the tiles");
  const std::int64_t numbers =
      checked_product({cells, work.out.outer * work.out.inner + 1}, "the sum of the tiles");
  return checked_cast<std::uint64_t>(double(sizeof(float)) * double(numbers), "bytes");
}

}  // namespace heddle::blocks
