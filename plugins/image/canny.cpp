#include "plugins/image/canny.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace heddle::image {
namespace {

// Rows of numbers, with a rule for what lies outside.
struct GreyGrid {
  std::int64_t height, width;
  std::vector<float> values;

  float mirrored(std::int64_t y, std::int64_t x) const {
    const auto fold = [](std::int64_t at, std::int64_t side) {
      return at < 0 ? -at : at >= side ? 2 * (side - 1) - at : at;
    };
    return at(fold(y, height), fold(x, width));
  }
  float clamped(std::int64_t y, std::int64_t x) const {
    return at(std::clamp<std::int64_t>(y, 0, height - 1),
              std::clamp<std::int64_t>(x, 0, width - 1));
  }
  float or_zero(std::int64_t y, std::int64_t x) const {
    return y < 0 || x < 0 || y >= height || x >= width ? 0.0f : at(y, x);
  }
  float at(std::int64_t y, std::int64_t x) const { return values[std::size_t(y * width + x)]; }
};

// 5 x 5, sigma 1.
GreyGrid blurred(const GreyGrid& from) {
  std::array<float, 5> weights{};
  float sum = 0;
  for (int i = 0; i < 5; ++i)
    sum += weights[std::size_t(i)] = std::exp(-float((i - 2) * (i - 2)) / 2);
  for (float& weight : weights) weight /= sum;
  GreyGrid wide{from.height, from.width, {}}, both{from.height, from.width, {}};
  for (std::int64_t y = 0; y < from.height; ++y)
    for (std::int64_t x = 0; x < from.width; ++x) {
      float value = 0;
      for (int k = 0; k < 5; ++k) value += weights[std::size_t(k)] * from.mirrored(y, x + k - 2);
      wide.values.push_back(value);
    }
  for (std::int64_t y = 0; y < from.height; ++y)
    for (std::int64_t x = 0; x < from.width; ++x) {
      float value = 0;
      for (int k = 0; k < 5; ++k) value += weights[std::size_t(k)] * wide.mirrored(y + k - 2, x);
      both.values.push_back(value);
    }
  return both;
}

// The eight neighbours: to the right, then clockwise.
constexpr int kDx[] = {1, 1, 0, -1, -1, -1, 0, 1}, kDy[] = {0, 1, 1, 1, 0, -1, -1, -1};

}  // namespace

std::vector<bool> canny_edges(const std::vector<float>& grey, std::int64_t height,
                              std::int64_t width, float low, float high) {
  const GreyGrid smooth = blurred({height, width, grey});
  GreyGrid slope{height, width, {}};
  std::vector<int> direction;  // of the slope: which neighbour
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      const auto g = [&](int dy, int dx) { return smooth.clamped(y + dy, x + dx); };
      const float gx = g(-1, 1) - g(-1, -1) + 2 * (g(0, 1) - g(0, -1)) + g(1, 1) - g(1, -1);
      const float gy = g(1, -1) - g(-1, -1) + 2 * (g(1, 0) - g(-1, 0)) + g(1, 1) - g(-1, 1);
      slope.values.push_back(std::sqrt(gx * gx + gy * gy + 1e-6f));
      const float degrees = std::atan2(gy, gx) * float(180 / std::numbers::pi);
      direction.push_back((int(std::nearbyint(degrees / 45)) + 8) % 8);
    }
  std::vector<bool> is_edge(grey.size()), is_weak(grey.size());
  std::vector<std::int64_t> found;
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      const std::size_t at = std::size_t(y * width + x);
      const float value = slope.values[at];
      const int to = direction[at], back = (to + 4) % 8;
      const bool is_ridge = value > slope.or_zero(y + kDy[to], x + kDx[to]) &&
                            value > slope.or_zero(y + kDy[back], x + kDx[back]);
      is_weak[at] = is_ridge && value > low;
      is_edge[at] = is_ridge && value > high;
      if (is_edge[at]) found.push_back(y * width + x);
    }
  while (!found.empty()) {
    const std::int64_t y = found.back() / width, x = found.back() % width;
    found.pop_back();
    for (int k = 0; k < 8; ++k) {
      const std::int64_t ny = y + kDy[k], nx = x + kDx[k];
      if (ny < 0 || nx < 0 || ny >= height || nx >= width) continue;
      const std::size_t at = std::size_t(ny * width + nx);
      if (!is_weak[at] || is_edge[at]) continue;
      is_edge[at] = true;
      found.push_back(ny * width + nx);
    }
  }
  return is_edge;
}

}  // namespace heddle::image
