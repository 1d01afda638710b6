// plugins/blocks/clip_wall.h - tiles of a clip that are coded one after another, put together
// again (h3_clips.h). Host memory; one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory_resource>
#include <utility>
#include <vector>

#include <heddle/checked.hpp>

namespace heddle::vae {

// Tiles of a side, in cells; each shares so many with the one before.
struct ClipTile {
  std::int64_t begin = 0, size = 0, shared = 0, shared_behind = 0;
};
struct ClipTiles {
  std::vector<ClipTile> rows, columns;
  std::int64_t count() const { return std::int64_t(rows.size() * columns.size()); }
  // Of one of them, row by row.
  const ClipTile& row_of(std::int64_t tile) const {
    return rows[std::size_t(tile) / columns.size()];
  }
  const ClipTile& column_of(std::int64_t tile) const {
    return columns[std::size_t(tile) % columns.size()];
  }
};
using ClipFloats = std::pmr::vector<float>;
// Numbers of outer x rows x columns x inner.
struct ClipShape {
  std::int64_t outer = 0, rows = 0, columns = 0, inner = 0;
  std::int64_t count() const { return checked_product({outer, rows, columns, inner}, "a clip"); }
};

// Puts tiles of one clip together: a tile's rows go over into those of the one above, then its
// columns into those of the one to the left, each as it was made.
class TileWall {
 public:
  // scale: of what is made, for each cell.
  TileWall(const ClipTiles& tiles, std::int64_t scale, const ClipShape& whole,
           std::pmr::memory_resource& memory)
      : tiles_(tiles), scale_(scale), whole_(whole), mixed_(&memory) {
    for (std::size_t i = 0; i < tiles.columns.size(); ++i) {
      above_.emplace_back(&memory);
      here_.emplace_back(&memory);
    }
  }

  // What is made of the next tile, row by row of them: where to put it, before it is put into the
  // clip `to`.
  ClipFloats& next() { return here_[column_]; }
  // Whether it was the last one of the clip: then the next one is the first of another.
  bool put_next(float* to) {
    put(row_, column_, to);
    if (++column_ < tiles_.columns.size()) return false;
    column_ = 0;
    std::swap(above_, here_);
    if (++row_ < tiles_.rows.size()) return false;
    row_ = 0;
    return true;
  }

 private:
  ClipShape shape(std::size_t i, std::size_t j) const {
    return {whole_.outer, tiles_.rows[i].size * scale_, tiles_.columns[j].size * scale_,
            whole_.inner};
  }
  void put(std::size_t i, std::size_t j, float* to) {
    const ClipTile &row = tiles_.rows[i], &column = tiles_.columns[j];
    const ClipShape size = shape(i, j);
    mixed_.assign(here_[j].begin(), here_[j].end());
    if (i > 0) go_over(above_[j], shape(i - 1, j), size, row.shared * scale_, true);
    if (j > 0) go_over(here_[j - 1], shape(i, j - 1), size, column.shared * scale_, false);
    const std::int64_t rows = size.rows - row.shared_behind * scale_,
                       numbers = (size.columns - column.shared_behind * scale_) * size.inner;
    for (std::int64_t o = 0; o < size.outer; ++o)
      for (std::int64_t y = 0; y < rows; ++y) {
        const float* from = mixed_.data() + (o * size.rows + y) * size.columns * size.inner;
        float* there = to + ((o * whole_.rows + row.begin * scale_ + y) * whole_.columns +
                             column.begin * scale_) *
                                size.inner;
        std::copy(from, from + numbers, there);
      }
  }
  // The first rows or columns of mixed_ with the last ones of what lies before it.
  void go_over(const ClipFloats& before, const ClipShape& had, const ClipShape& has,
               std::int64_t shared, bool by_rows) {
    for (std::int64_t o = 0; o < has.outer; ++o)
      for (std::int64_t y = 0; y < (by_rows ? shared : has.rows); ++y)
        for (std::int64_t x = 0; x < (by_rows ? has.columns : shared); ++x) {
          const float share = float(by_rows ? y : x) / float(shared);
          const std::int64_t from_y = by_rows ? had.rows - shared + y : y,
                             from_x = by_rows ? x : had.columns - shared + x;
          const float* from =
              before.data() + ((o * had.rows + from_y) * had.columns + from_x) * had.inner;
          float* to = mixed_.data() + ((o * has.rows + y) * has.columns + x) * has.inner;
          for (std::int64_t c = 0; c < has.inner; ++c)
            to[c] = from[c] * (1 - share) + to[c] * share;
        }
  }

  const ClipTiles& tiles_;
  std::int64_t scale_;
  ClipShape whole_;
  ClipFloats mixed_;
  std::vector<ClipFloats> above_, here_;
  std::size_t row_ = 0, column_ = 0;  // of the next tile
};

// Bytes of a clip and of what puts its tiles together: two rows of them, and one more tile.
inline std::uint64_t wall_bytes(const ClipTiles& tiles, std::int64_t scale,
                                const ClipShape& whole) {
  std::int64_t rows = 0, columns = 0, most = 0;
  for (const ClipTile& row : tiles.rows) rows = std::max(rows, row.size * scale);
  for (const ClipTile& column : tiles.columns) {
    columns += column.size * scale;
    most = std::max(most, column.size * scale);
  }
  return sizeof(float) *
         std::uint64_t(whole.count() + whole.outer * rows * (2 * columns + most) * whole.inner);
}

}  // namespace heddle::vae
