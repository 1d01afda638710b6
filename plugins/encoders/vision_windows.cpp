#include "vision_windows.h"

#include <heddle/ops.hpp>

namespace heddle::encoders {

std::vector<WindowKind> window_kinds(const VisionGrid& grid) {
  struct Stretch {
    std::int64_t begin, windows, size;
  };
  const auto stretches = [&](std::int64_t units) {
    const std::int64_t whole = units / grid.side, rest = units % grid.side;
    std::vector<Stretch> found;
    if (whole > 0) found.push_back({0, whole, grid.side});
    if (rest > 0) found.push_back({whole * grid.side, 1, rest});
    return found;
  };
  std::vector<WindowKind> kinds;
  std::int64_t begin = 0;
  for (const Stretch& down : stretches(grid.rows))
    for (const Stretch& right : stretches(grid.columns)) {
      kinds.push_back(
          {down.begin, right.begin, down.windows, right.windows, down.size, right.size, begin});
      begin = kinds.back().end();
    }
  return kinds;
}

void to_windows(Context& ctx, const VisionGrid& grid, const Tensor& raster, const Tensor& out) {
  const std::int64_t m = grid.merge, area = m * m, width = raster.size(3);
  for (const WindowKind& kind : window_kinds(grid)) {
    const std::int64_t rows = kind.windows_down * kind.height,
                       columns = kind.windows_right * kind.width;
    const Tensor part = raster.slice(1, kind.row * m, (kind.row + rows) * m)
                            .slice(2, kind.column * m, (kind.column + columns) * m);
    const Tensor by_window =
        part.reshape({kind.windows_down, kind.height, m, kind.windows_right, kind.width, m, width})
            .permute({0, 3, 1, 4, 2, 5, 6});
    ops::copy_into(ctx, by_window,
                   out.slice(1, kind.begin * area, kind.end() * area).reshape(by_window.shape()));
  }
}

void from_windows(Context& ctx, const VisionGrid& grid, const Tensor& units, const Tensor& out) {
  const std::int64_t width = units.size(2);
  const Tensor raster = out.reshape({grid.rows, grid.columns, width});
  for (const WindowKind& kind : window_kinds(grid)) {
    const std::int64_t rows = kind.windows_down * kind.height,
                       columns = kind.windows_right * kind.width;
    const Tensor to =
        raster.slice(0, kind.row, kind.row + rows)
            .slice(1, kind.column, kind.column + columns)
            .reshape({kind.windows_down, kind.height, kind.windows_right, kind.width, width})
            .permute({0, 2, 1, 3, 4});
    ops::copy_into(ctx, units.slice(1, kind.begin, kind.end()).reshape(to.shape()), to);
  }
}

}  // namespace heddle::encoders
