#include "moge_camera.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "least_squares.h"

namespace heddle::detection {
namespace {

using blocks::GridSize;
constexpr std::int64_t kSamples = 64;  // of a side

double aspect_of(const GridSize& size) { return double(size.width) / double(size.height); }
double diagonal_of(const GridSize& size) { return std::hypot(1.0, aspect_of(size)); }

// Which pixel stands for sample i of a side, as PyTorch's "nearest".
std::int64_t sampled(std::int64_t i, std::int64_t side) {
  const float step = float(side) / float(kSamples);
  return std::min(std::int64_t(std::floor(float(i) * step)), side - 1);
}

// Points that are seen, and where.
struct Sights {
  explicit Sights(std::pmr::memory_resource& memory) : numbers(&memory) {}
  struct Sight {
    double u, v, x, y, z;
  };
  std::pmr::vector<Sight> numbers;

  // The focal length that fits best with this shift.
  double focal(double shift) const {
    double along = 0, squares = 0;
    for (const Sight& s : numbers) {
      const double x = s.x / (s.z + shift), y = s.y / (s.z + shift);
      along += x * s.u + y * s.v;
      squares += x * x + y * y;
    }
    return along / squares;
  }
};

}  // namespace

MogeCamera camera_of(const float* points, const std::uint8_t* seen, const GridSize& size,
                     std::optional<double> focal, std::pmr::memory_resource& memory) {
  constexpr double kRelativeError = 1e-3;
  const double aspect = aspect_of(size), diagonal = diagonal_of(size);
  const auto place = [](std::int64_t i, std::int64_t side, double span) {
    return double(float(span * double(2 * i + 1 - side) / double(side)));
  };
  Sights sights(memory);
  sights.numbers.reserve(std::size_t(kSamples * kSamples));
  for (std::int64_t row = 0; row < kSamples; ++row)
    for (std::int64_t column = 0; column < kSamples; ++column) {
      const std::int64_t y = sampled(row, size.height), x = sampled(column, size.width),
                         at = y * size.width + x;
      if (seen[at] == 0) continue;
      const float* const point = points + 3 * at;
      sights.numbers.push_back({place(x, size.width, aspect / diagonal),
                                place(y, size.height, 1 / diagonal), point[0], point[1], point[2]});
    }
  if (sights.numbers.size() < 2) return {focal.value_or(1), 0};
  const Residuals residuals = [&](double shift, std::pmr::vector<double>& out) {
    const double f = focal ? *focal : sights.focal(shift);
    std::size_t i = 0;
    for (const Sights::Sight& s : sights.numbers) {
      out[i++] = f * s.x / (s.z + shift) - s.u;
      out[i++] = f * s.y / (s.z + shift) - s.v;
    }
  };
  const double shift = least_squares(residuals, 2 * sights.numbers.size(),
                                     {.relative_error = kRelativeError}, memory);
  return {focal ? *focal : sights.focal(shift), shift};
}

double focal_of_fov(double degrees, const GridSize& size) {
  return aspect_of(size) / diagonal_of(size) / std::tan(degrees / 2 * std::numbers::pi / 180);
}

double focal_of_height(double focal, const GridSize& size) { return focal / 2 * diagonal_of(size); }

}  // namespace heddle::detection
