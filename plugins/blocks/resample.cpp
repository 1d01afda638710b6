#include "plugins/blocks/resample.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace heddle::blocks {
namespace {

// The cells that one cell of the result is made of, along one axis.
template <class T>
struct Taps {
  std::vector<std::int64_t> cells;
  std::vector<T> weights;
};
template <class T>
using Axis = std::vector<Taps<T>>;

Taps<float> nearest_taps(std::int64_t i, std::int64_t from, float scale) {
  const auto cell = static_cast<std::int64_t>(std::floor(float((double(i) + 0.5) * scale)));
  return {{std::min(cell, from - 1)}, {1.0f}};
}

Taps<float> bilinear_taps(std::int64_t i, std::int64_t from, float scale) {
  const float at = std::max(scale * (float(i) + 0.5f) - 0.5f, 0.0f);
  const std::int64_t low = std::min(static_cast<std::int64_t>(at), from - 1);
  const float weight = at - float(low);
  return {{low, std::min(low + 1, from - 1)}, {1.0f - weight, weight}};
}

Taps<float> area_taps(std::int64_t i, std::int64_t from, std::int64_t to) {
  const std::int64_t begin = i * from / to, end = ((i + 1) * from + to - 1) / to;
  Taps<float> taps;
  for (std::int64_t cell = begin; cell < end; ++cell) {
    taps.cells.push_back(cell);
    taps.weights.push_back(1.0f / float(end - begin));
  }
  return taps;
}

// Keys' cubic convolution with a = -0.75.
Taps<float> bicubic_taps(std::int64_t i, std::int64_t from, float scale) {
  constexpr float a = -0.75f;
  const auto near = [](float x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [](float x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  const float at = scale * (float(i) + 0.5f) - 0.5f;
  const float floor = std::floor(at), t = at - floor;
  Taps<float> taps{{}, {far(t + 1), near(t), near(1 - t), far(2 - t)}};
  for (std::int64_t k = -1; k <= 2; ++k)
    taps.cells.push_back(
        std::clamp<std::int64_t>(static_cast<std::int64_t>(floor) + k, 0, from - 1));
  return taps;
}

Axis<float> axis(std::int64_t from, std::int64_t to, Resampling method) {
  const float scale = float(from) / float(to);
  Axis<float> all;
  for (std::int64_t i = 0; i < to; ++i) switch (method) {
      case Resampling::nearest_exact:
        all.push_back(nearest_taps(i, from, scale));
        break;
      case Resampling::bilinear:
        all.push_back(bilinear_taps(i, from, scale));
        break;
      case Resampling::area:
        all.push_back(area_taps(i, from, to));
        break;
      case Resampling::bicubic:
        all.push_back(bicubic_taps(i, from, scale));
        break;
    }
  return all;
}

// One axis of `before` x from x `after` numbers.
template <class Number, class Weight, class Sum>
std::vector<Number> along(const std::vector<Number>& values, std::int64_t before, std::int64_t from,
                          std::int64_t after, const Axis<Weight>& axis, Sum&& finish) {
  std::vector<Number> out(std::size_t(before) * axis.size() * std::size_t(after));
  std::size_t to = 0;
  for (std::int64_t b = 0; b < before; ++b)
    for (const Taps<Weight>& taps : axis)
      for (std::int64_t a = 0; a < after; ++a) {
        Weight sum = 0;
        for (std::size_t k = 0; k < taps.cells.size(); ++k)
          sum +=
              taps.weights[k] * Weight(values[std::size_t((b * from + taps.cells[k]) * after + a)]);
        out[to++] = finish(sum);
      }
  return out;
}

// Pillow's fixed-point numbers: weights of 22 bits behind the point.
constexpr int kBits = 22;

double lanczos(double x) {
  const auto sinc = [](double y) {
    return y == 0 ? 1.0 : std::sin(y * std::numbers::pi) / (y * std::numbers::pi);
  };
  return -3 <= x && x < 3 ? sinc(x) * sinc(x / 3) : 0.0;
}

Taps<std::int64_t> lanczos_taps(std::int64_t i, std::int64_t from, std::int64_t to) {
  const double scale = double(from) / double(to), stretch = std::max(scale, 1.0);
  const double centre = (double(i) + 0.5) * scale, support = 3 * stretch;
  const auto begin = std::max<std::int64_t>(std::int64_t(centre - support + 0.5), 0);
  const auto end = std::min<std::int64_t>(std::int64_t(centre + support + 0.5), from);
  std::vector<double> weights;
  double sum = 0;
  for (std::int64_t cell = begin; cell < end; ++cell) {
    weights.push_back(lanczos((double(cell) - centre + 0.5) / stretch));
    sum += weights.back();
  }
  Taps<std::int64_t> taps;
  for (std::int64_t cell = begin; cell < end; ++cell) {
    const double weight = weights[std::size_t(cell - begin)] / sum * double(1 << kBits);
    taps.cells.push_back(cell);
    taps.weights.push_back(std::int64_t(weight < 0 ? weight - 0.5 : weight + 0.5));
  }
  return taps;
}

Axis<std::int64_t> lanczos_axis(std::int64_t from, std::int64_t to) {
  Axis<std::int64_t> all;
  for (std::int64_t i = 0; i < to; ++i) all.push_back(lanczos_taps(i, from, to));
  return all;
}

}  // namespace

std::optional<Resampling> resampling_named(std::string_view name) {
  if (name == "nearest-exact") return Resampling::nearest_exact;
  if (name == "bilinear") return Resampling::bilinear;
  if (name == "area") return Resampling::area;
  if (name == "bicubic") return Resampling::bicubic;
  return std::nullopt;
}

std::int64_t rounded(double value) { return std::int64_t(std::nearbyint(value)); }

Crop centre_crop(const GridSize& from, const GridSize& to) {
  const double width = double(from.width), height = double(from.height);
  const double aspect = width / height, wanted = double(to.width) / double(to.height);
  // Of two columns none would be left where half of one is wanted.
  const auto half = [](double side, double kept) {
    return std::min(rounded((side - kept) / 2), (std::int64_t(side) - 1) / 2);
  };
  if (aspect > wanted) return {0, half(width, width * (wanted / aspect))};
  if (aspect < wanted) return {half(height, height * (aspect / wanted)), 0};
  return {};
}

std::vector<float> cropped(std::span<const float> values, const Grids& from, const Crop& crop) {
  std::vector<float> out;
  const std::int64_t row = from.size.width * from.inner;
  const std::int64_t begin = crop.left * from.inner, length = row - 2 * begin;
  for (std::int64_t o = 0; o < from.outer; ++o)
    for (std::int64_t y = crop.top; y < from.size.height - crop.top; ++y) {
      const auto part = values.subspan(std::size_t((o * from.size.height + y) * row + begin),
                                       std::size_t(length));
      out.insert(out.end(), part.begin(), part.end());
    }
  return out;
}

std::vector<float> resampled(std::span<const float> values, const Grids& from, const GridSize& to,
                             Resampling method) {
  const auto keep = [](float x) { return x; };
  const std::vector<float> all(values.begin(), values.end());
  const std::vector<float> wide = along(all, from.outer * from.size.height, from.size.width,
                                        from.inner, axis(from.size.width, to.width, method), keep);
  return along(wide, from.outer, from.size.height, to.width * from.inner,
               axis(from.size.height, to.height, method), keep);
}

std::vector<float> lanczos_resampled(std::span<const float> values, const Grids& from,
                                     const GridSize& to) {
  std::vector<std::uint8_t> bytes;
  for (const float value : values)  // what is no number is black, as when it is saved
    bytes.push_back(value > 0 ? std::uint8_t(std::min(255.0f * value, 255.0f)) : std::uint8_t{0});
  const auto to_byte = [](std::int64_t sum) {
    return std::uint8_t(
        std::clamp<std::int64_t>((sum + (std::int64_t{1} << (kBits - 1))) >> kBits, 0, 255));
  };
  // Pillow leaves an axis alone that keeps its size.
  if (to.width != from.size.width)
    bytes = along(bytes, from.outer * from.size.height, from.size.width, from.inner,
                  lanczos_axis(from.size.width, to.width), to_byte);
  if (to.height != from.size.height)
    bytes = along(bytes, from.outer, from.size.height, to.width * from.inner,
                  lanczos_axis(from.size.height, to.height), to_byte);
  std::vector<float> out;
  for (const std::uint8_t byte : bytes) out.push_back(float(byte) / 255.0f);
  return out;
}

}  // namespace heddle::blocks
