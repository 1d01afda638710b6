// The windows of a vision tower: how the patches of a picture are put in an order in which each
// window's lie one after another. Squares of `merge` x `merge` patches are units and stay together;
// a window is `side` x `side` units, fewer at the right and lower edge. Windows of one size follow
// each other, so that each kind is one attention. Shapes only; used in blocks, as they are traced.
#pragma once

#include <cstdint>
#include <vector>

#include <heddle/node.hpp>

namespace heddle::encoders {

// Units of a picture, and their windows.
struct VisionGrid {
  std::int64_t rows, columns;  // in units
  std::int64_t merge;          // patches along a unit's side
  std::int64_t side;           // units along a whole window's side

  std::int64_t units() const { return rows * columns; }
  std::int64_t patches() const { return units() * merge * merge; }
};

// A rectangle of the picture that windows of one size cover, and where its units stand in the
// order.
struct WindowKind {
  std::int64_t row, column;  // the first unit
  std::int64_t windows_down, windows_right;
  std::int64_t height, width;  // units of a window
  std::int64_t begin;          // units before these

  std::int64_t windows() const { return windows_down * windows_right; }
  std::int64_t end() const { return begin + windows() * height * width; }
};
// At most four: whole windows, those at the right edge, at the lower edge, and in the corner.
std::vector<WindowKind> window_kinds(const VisionGrid& grid);

// raster (1, h, w, D), in patches, into out (1, patches, D), by windows.
void to_windows(Context& ctx, const VisionGrid& grid, const Tensor& raster, const Tensor& out);
// units (1, units, D), by windows, into out (1, units, D), row after row.
void from_windows(Context& ctx, const VisionGrid& grid, const Tensor& units, const Tensor& out);

}  // namespace heddle::encoders
