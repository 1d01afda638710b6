#include "plugins/image/layer_bitmap.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "plugins/blocks/resample.h"

namespace heddle::image {
namespace {

LayerBitmap empty_bitmap(const LayerBitmap& like, std::int64_t width, std::int64_t height) {
  return {width, height,
          std::pmr::vector<std::uint8_t>(std::size_t(width * height * 4), 0,
                                         like.rgba.get_allocator())};
}

LayerBitmap premultiplied(const LayerBitmap& from) {
  LayerBitmap to = empty_bitmap(from, from.width, from.height);
  for (std::size_t i = 0; i < from.rgba.size(); i += 4) {
    const unsigned alpha = from.rgba[i + 3];
    for (std::size_t c = 0; c < 3; ++c) {
      const unsigned product = from.rgba[i + c] * alpha + 128;
      to.rgba[i + c] = std::uint8_t(((product >> 8) + product) >> 8);
    }
    to.rgba[i + 3] = std::uint8_t(alpha);
  }
  return to;
}

void undo_premultiply(LayerBitmap& bitmap) {
  for (std::size_t i = 0; i < bitmap.rgba.size(); i += 4) {
    const unsigned alpha = bitmap.rgba[i + 3];
    if (alpha == 0 || alpha == 255) continue;
    for (std::size_t c = 0; c < 3; ++c)
      bitmap.rgba[i + c] = std::uint8_t(std::min(255u, 255u * bitmap.rgba[i + c] / alpha));
  }
}

// Quarter turns against the clock.
LayerBitmap turned_by_quarters(const LayerBitmap& from, int turns) {
  if (turns == 0) return from;
  if (turns == 2) return flipped(from, true, true);
  LayerBitmap to = empty_bitmap(from, from.height, from.width);
  for (std::int64_t y = 0; y < from.height; ++y)
    for (std::int64_t x = 0; x < from.width; ++x)
      std::copy_n(from.at(x, y), 4,
                  turns == 1 ? to.at(y, from.width - 1 - x) : to.at(from.height - 1 - y, x));
  return to;
}

double cubic(double v1, double v2, double v3, double v4, double d) {
  return v2 + d * ((-v1 + v3) + d * ((2 * (v1 - v2) + v3 - v4) + d * (-v1 + v2 - v3 + v4)));
}

// From a place of the result to one of the source, in pixels.
struct AffineMap {
  double a, b, c, d, e, f;
  double x(double px, double py) const { return a * px + b * py + c; }
  double y(double px, double py) const { return d * px + e * py + f; }
  void move(double px, double py) {
    const double nx = x(px, py), ny = y(px, py);
    c = nx;
    f = ny;
  }
};

// The pixel at a place between pixels.
void interpolate(const LayerBitmap& from, double x, double y, std::uint8_t* to) {
  x -= 0.5;
  y -= 0.5;
  const double left = std::floor(x), top = std::floor(y), dx = x - left, dy = y - top;
  std::int64_t columns[4];
  for (std::int64_t k = 0; k < 4; ++k)
    columns[k] = std::clamp<std::int64_t>(std::int64_t(left) - 1 + k, 0, from.width - 1);
  for (std::size_t c = 0; c < 4; ++c) {
    double rows[4];
    for (std::int64_t k = 0; k < 4; ++k) {
      std::int64_t row = std::int64_t(top) - 1 + k;
      if (k == 0) row = std::clamp<std::int64_t>(row, 0, from.height - 1);
      if (row < 0 || row >= from.height) {
        rows[k] = rows[k - 1];  // as the one above it
        continue;
      }
      const auto sample = [&](int i) { return double(from.at(columns[i], row)[c]); };
      rows[k] = cubic(sample(0), sample(1), sample(2), sample(3), dx);
    }
    to[c] = std::uint8_t(std::clamp(cubic(rows[0], rows[1], rows[2], rows[3], dy), 0.0, 255.0));
  }
}

}  // namespace

LayerBitmap flipped(const LayerBitmap& from, bool horizontally, bool vertically) {
  LayerBitmap to = empty_bitmap(from, from.width, from.height);
  for (std::int64_t y = 0; y < from.height; ++y)
    for (std::int64_t x = 0; x < from.width; ++x)
      std::copy_n(
          from.at(x, y), 4,
          to.at(horizontally ? from.width - 1 - x : x, vertically ? from.height - 1 - y : y));
  return to;
}

LayerBitmap resized_bitmap(const LayerBitmap& from, std::int64_t width, std::int64_t height) {
  const LayerBitmap ready = premultiplied(from);
  const auto memory = from.rgba.get_allocator().resource();
  std::pmr::vector<float> numbers(ready.rgba.size(), memory),
      made(std::size_t(width * height * 4), memory);
  // Between two bytes, because the way back cuts what is below one.
  std::ranges::transform(ready.rgba, numbers.begin(),
                         [](std::uint8_t byte) { return (float(byte) + 0.5f) / 255.0f; });
  blocks::resample_lanczos(blocks::Source::of(numbers.data(), {1, {from.height, from.width}, 4}),
                           {height, width}, made.data(), *memory);
  LayerBitmap to = empty_bitmap(from, width, height);
  std::ranges::transform(made, to.rgba.begin(),
                         [](float x) { return std::uint8_t(std::lround(x * 255.0f)); });
  undo_premultiply(to);
  return to;
}

LayerBitmap rotated(const LayerBitmap& from, double degrees) {
  double angle = std::fmod(degrees, 360.0);
  if (angle < 0) angle += 360;
  if (std::fmod(angle, 90.0) == 0) return turned_by_quarters(from, int(angle / 90) % 4);
  const double radians = -angle * std::numbers::pi / 180;
  const auto rounded = [](double x) { return std::nearbyint(x * 1e15) / 1e15; };
  AffineMap back{rounded(std::cos(radians)),  rounded(std::sin(radians)), 0,
                 rounded(-std::sin(radians)), rounded(std::cos(radians)), 0};
  const double w = double(from.width), h = double(from.height);
  back.move(-w / 2, -h / 2);
  back.c += w / 2;
  back.f += h / 2;
  const std::array<double, 4> xs = {back.x(0, 0), back.x(w, 0), back.x(w, h), back.x(0, h)},
                              ys = {back.y(0, 0), back.y(w, 0), back.y(w, h), back.y(0, h)};
  const auto extent = [](const std::array<double, 4>& at) {
    return std::int64_t(std::ceil(std::ranges::max(at)) - std::floor(std::ranges::min(at)));
  };
  LayerBitmap to = empty_bitmap(from, extent(xs), extent(ys));
  back.move(-(double(to.width) - w) / 2, -(double(to.height) - h) / 2);
  const LayerBitmap ready = premultiplied(from);
  for (std::int64_t y = 0; y < to.height; ++y)
    for (std::int64_t x = 0; x < to.width; ++x) {
      const double px = back.x(double(x) + 0.5, double(y) + 0.5),
                   py = back.y(double(x) + 0.5, double(y) + 0.5);
      if (px >= 0 && px < w && py >= 0 && py < h) interpolate(ready, px, py, to.at(x, y));
    }
  undo_premultiply(to);
  return to;
}

}  // namespace heddle::image
