#include "bislerp.h"

#include <algorithm>
#include <cmath>

#include "plugins/blocks/resample_taps.h"

namespace heddle::samplers {
namespace {

// Between two vectors whose numbers lie `step` apart.
void slerp(const float* a, const float* b, std::int64_t step, std::int64_t count, float ratio,
           float* to, std::int64_t to_step) {
  double aa = 0, bb = 0, ab = 0;
  for (std::int64_t c = 0; c < count; ++c) {
    const double x = a[c * step], y = b[c * step];
    aa += x * x;
    bb += y * y;
    ab += x * y;
  }
  const double la = std::sqrt(aa), lb = std::sqrt(bb);
  const double dot = la > 0 && lb > 0 ? std::clamp(ab / (la * lb), -1.0, 1.0) : 0.0;
  constexpr double kNear = 1e-5;
  double wa = 1 - ratio, wb = ratio;  // opposite: a line
  if (dot > 1 - kNear) {
    wa = 1;
    wb = 0;
  } else if (dot >= kNear - 1) {
    const double angle = std::acos(dot), length = la * (1 - ratio) + lb * ratio;
    wa = la > 0 ? std::sin((1 - ratio) * angle) / std::sin(angle) * length / la : 0;
    wb = lb > 0 ? std::sin(ratio * angle) / std::sin(angle) * length / lb : 0;
  }
  for (std::int64_t c = 0; c < count; ++c)
    to[c * to_step] = float(wa * a[c * step] + wb * b[c * step]);
}

}  // namespace

void bislerp(const float* from, const CellGrid& grid, std::int64_t height, std::int64_t width,
             float* to, const std::function<void()>& before_row) {
  using blocks::CellPair;
  const std::vector<CellPair> columns = blocks::pairs_along(grid.width, width),
                              rows = blocks::pairs_along(grid.height, height);
  const std::int64_t plane = grid.height * grid.width, wide_plane = grid.height * width,
                     new_plane = height * width;
  std::vector<float> wide(std::size_t(grid.channels * wide_plane));
  for (std::int64_t o = 0; o < grid.outer; ++o)
    for (std::int64_t i = 0; i < grid.inner; ++i) {
      const float* first = from + (o * grid.channels * grid.inner + i) * plane;
      float* result = to + (o * grid.channels * grid.inner + i) * new_plane;
      for (std::int64_t y = 0; y < grid.height; ++y) {
        before_row();
        for (std::int64_t x = 0; x < width; ++x) {
          const CellPair& n = columns[std::size_t(x)];
          const float* row = first + y * grid.width;
          slerp(row + n.low, row + n.high, grid.inner * plane, grid.channels, n.ratio,
                wide.data() + y * width + x, wide_plane);
        }
      }
      for (std::int64_t y = 0; y < height; ++y) {
        before_row();
        const CellPair& n = rows[std::size_t(y)];
        for (std::int64_t x = 0; x < width; ++x)
          slerp(wide.data() + n.low * width + x, wide.data() + n.high * width + x, wide_plane,
                grid.channels, n.ratio, result + y * width + x, grid.inner * new_plane);
      }
    }
}

}  // namespace heddle::samplers
