// Walking strided views by rows: a row is everything along the last axis. Operands may be smaller
// than the output where they broadcast: an axis of size 1 is read again and again. Pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "elements.h"
#include "heddle/device.hpp"
#include "scratch.h"

namespace heddle::cpu {

inline std::int64_t last_size(const heddle_tensor_info& info) {
  return info.rank == 0 ? 1 : info.shape[info.rank - 1];
}
inline std::int64_t last_stride(const heddle_tensor_info& info) {
  return info.rank == 0 ? 1 : info.stride[info.rank - 1];
}

inline std::int64_t row_count(const heddle_tensor_info& info) {
  std::int64_t count = 1;
  for (std::uint32_t axis = 0; axis + 1 < info.rank; ++axis) count *= info.shape[axis];
  return count;
}

// Elements from the view's first element to its part of row number `row` of `whole`. REQUIRES: view
// broadcasts to whole.
inline std::int64_t row_offset(const heddle_tensor_info& view, const heddle_tensor_info& whole,
                               std::int64_t row) {
  if (whole.rank < 2) return 0;
  std::int64_t offset = 0;
  for (std::uint32_t axis = whole.rank - 2; axis > 0; --axis) {
    const std::int64_t index = row % whole.shape[axis];
    row /= whole.shape[axis];
    if (view.shape[axis] != 1) offset += index * view.stride[axis];
  }
  return view.shape[0] != 1 ? offset + row * view.stride[0] : offset;  // without a division
}

// Elements from each row to the next, where that is the same for all of them.
inline std::optional<std::int64_t> even_step(const heddle_tensor_info& info) {
  if (info.rank < 2) return 0;
  std::int64_t extent = 0;  // of what lies below, once there is more than one row
  std::int64_t step = 0;
  for (std::uint32_t axis = info.rank - 1; axis-- > 0;) {
    if (info.shape[axis] == 1) continue;
    if (extent == 0)
      step = info.stride[axis];
    else if (info.stride[axis] != extent)
      return std::nullopt;
    extent = info.stride[axis] * info.shape[axis];
  }
  return step;
}

// REQUIRES: of a block format the beginning of a block.
inline std::byte* element(const heddle_view& view, std::int64_t offset) {
  return static_cast<std::byte*>(view.data) + device::bytes_of(view.info.dtype, offset);
}

// A piece of a row: where it lies. Pieces and their grouping follow from the shape alone.
struct Piece {
  std::int64_t row, begin, count;
};

// Cuts `info` into pieces of at most kPieceElements, gives them to tile(piece, scratch), several to
// a parallel tile.
template <class Runner, class Tile>
void for_each_piece(const Runner& runner, const heddle_tensor_info& info, Tile&& tile) {
  constexpr std::int64_t kPieceElements = 4096;
  constexpr std::int64_t kTileElements = 32768;
  const std::int64_t width = last_size(info);
  if (width == 0) return;
  const std::int64_t per_row = (width + kPieceElements - 1) / kPieceElements;
  const std::int64_t pieces = row_count(info) * per_row;
  const std::int64_t per_tile =
      std::max<std::int64_t>(1, kTileElements / std::min(width, kPieceElements));
  runner.parallel_for(
      (pieces + per_tile - 1) / per_tile, [&](std::int64_t group, Scratch& scratch) {
        const std::int64_t end = std::min(pieces, (group + 1) * per_tile);
        for (std::int64_t p = group * per_tile; p < end; ++p) {
          const std::int64_t begin = p % per_row * kPieceElements;
          scratch.reset();
          tile(Piece{p / per_row, begin, std::min(kPieceElements, width - begin)}, scratch);
        }
      });
}

// Whole rows, several to a parallel tile: tile(row, scratch).
template <class Runner, class Tile>
void for_each_row(const Runner& runner, const heddle_tensor_info& info, Tile&& tile) {
  constexpr std::int64_t kTileElements = 16384;
  const std::int64_t rows = row_count(info);
  const std::int64_t per_tile =
      std::max<std::int64_t>(1, kTileElements / std::max<std::int64_t>(1, last_size(info)));
  runner.parallel_for((rows + per_tile - 1) / per_tile, [&](std::int64_t group, Scratch& scratch) {
    const std::int64_t end = std::min(rows, (group + 1) * per_tile);
    for (std::int64_t row = group * per_tile; row < end; ++row) {
      scratch.reset();
      tile(row, scratch);
    }
  });
}

}  // namespace heddle::cpu
