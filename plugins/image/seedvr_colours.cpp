#include "plugins/image/seedvr_colours.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

namespace heddle::image {
namespace {

using Triple = std::array<double, 3>;
using Mixing = std::array<Triple, 3>;
using Floats = std::pmr::vector<float>;

// Between linear sRGB and XYZ (IEC 61966-2-1); Lab's curve and white (CIE 15, D65).
constexpr Mixing kXyzOfRgb{Triple{0.4124564, 0.3575761, 0.1804375},
                           Triple{0.2126729, 0.7151522, 0.0721750},
                           Triple{0.0193339, 0.1191920, 0.9503041}};
constexpr Mixing kRgbOfXyz{Triple{3.2404542, -1.5371385, -0.4985314},
                           Triple{-0.9692660, 1.8760108, 0.0415560},
                           Triple{0.0556434, -0.2040259, 1.0572252}};
constexpr Triple kWhitePoint{0.95047, 1.0, 1.08883};
constexpr double kLabDelta = 6.0 / 29.0, kLabKappa = 24389.0 / 27.0;

constexpr int kLevels = 5;          // of halved frequencies
constexpr double kOwnLight = 0.8;   // of L; the rest is the reference's
constexpr double kAdainEps = 1e-5;  // added to variances

Triple mixed(const Mixing& m, const Triple& v) {
  Triple out{};
  for (std::size_t r = 0; r < 3; ++r) out[r] = m[r][0] * v[0] + m[r][1] * v[1] + m[r][2] * v[2];
  return out;
}

double linear_light(double x) {
  return x > 0.04045 ? std::pow((x + 0.055) / 1.055, 2.4) : x / 12.92;
}
double display_light(double x) {
  return x > 0.0031308 ? 1.055 * std::pow(x, 1 / 2.4) - 0.055 : 12.92 * x;
}

// rgb from 0 to 1.
Triple lab_of(const Triple& rgb) {
  Triple f = mixed(kXyzOfRgb, {linear_light(rgb[0]), linear_light(rgb[1]), linear_light(rgb[2])});
  for (std::size_t i = 0; i < 3; ++i) {
    const double t = f[i] / kWhitePoint[i];
    f[i] = t > kLabDelta * kLabDelta * kLabDelta ? std::cbrt(t) : (kLabKappa * t + 16) / 116;
  }
  return {116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])};
}

Triple rgb_of(const Triple& lab) {
  const double y = (lab[0] + 16) / 116;
  Triple xyz{lab[1] / 500 + y, y, y - lab[2] / 200};
  for (std::size_t i = 0; i < 3; ++i) {
    const double f = xyz[i];
    xyz[i] = kWhitePoint[i] * (f > kLabDelta ? f * f * f : (116 * f - 16) / kLabKappa);
  }
  Triple rgb = mixed(kRgbOfXyz, xyz);
  for (double& x : rgb) x = std::clamp(display_light(x), 0.0, 1.0);
  return rgb;
}

// One plane of a size, with what works on it.
class LowFrequencies {
 public:
  LowFrequencies(std::int64_t height, std::int64_t width, std::pmr::memory_resource& memory)
      : height_(height),
        width_(width),
        wide_(std::size_t(height * width), &memory),
        low_(std::size_t(height * width), &memory) {}

  // What five filters of (1, 2, 1) / 4 along both axes leave, with 1, 2, 4, 8 and 16 pixels from
  // one sample to the next, but no more than an eighth of the shorter side. Beyond the edge its
  // pixels go on.
  const Floats& of(const float* plane, const std::function<void()>& ask) {
    std::copy_n(plane, low_.size(), low_.begin());
    const std::int64_t most = std::max<std::int64_t>(1, std::min(height_, width_) / 8);
    for (int level = 0; level < kLevels; ++level) {
      ask();
      blur(std::min(std::int64_t{1} << level, most));
    }
    return low_;
  }

 private:
  void blur(std::int64_t step) {
    for (std::int64_t y = 0; y < height_; ++y) {
      const float* from = low_.data() + y * width_;
      for (std::int64_t x = 0; x < width_; ++x) {
        const std::int64_t left = std::max<std::int64_t>(x - step, 0),
                           right = std::min(x + step, width_ - 1);
        wide_[std::size_t(y * width_ + x)] =
            0.25f * from[left] + 0.5f * from[x] + 0.25f * from[right];
      }
    }
    for (std::int64_t y = 0; y < height_; ++y) {
      const float* above = wide_.data() + std::max<std::int64_t>(y - step, 0) * width_;
      const float* here = wide_.data() + y * width_;
      const float* below = wide_.data() + std::min(y + step, height_ - 1) * width_;
      for (std::int64_t x = 0; x < width_; ++x)
        low_[std::size_t(y * width_ + x)] = 0.25f * above[x] + 0.5f * here[x] + 0.25f * below[x];
    }
  }

  std::int64_t height_, width_;
  Floats wide_, low_;
};

// The high frequencies of what was drawn, the low ones of the reference.
void by_wavelet(const ColourPlanes& drawn, const ColourPlanes& reference,
                std::pmr::memory_resource& memory, const std::function<void()>& ask) {
  LowFrequencies low(drawn.height, drawn.width, memory);
  for (std::int64_t c = 0; c < 3; ++c) {
    float* to = drawn.plane(c);
    const Floats& own = low.of(to, ask);
    for (std::size_t i = 0; i < own.size(); ++i) to[i] -= own[i];
    const Floats& wanted = low.of(reference.plane(c), ask);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      to[i] = std::clamp(to[i] + wanted[i], -1.0f, 1.0f);
  }
}

// In place of red, green and blue.
void to_lab(const ColourPlanes& planes, float* out, const std::function<void()>& ask) {
  const std::int64_t size = planes.size();
  const auto unit = [&](std::int64_t c, std::int64_t i) {
    return std::clamp((double(planes.plane(c)[i]) + 1) * 0.5, 0.0, 1.0);
  };
  for (std::int64_t i = 0; i < size; ++i) {
    if (i % planes.width == 0) ask();
    const Triple lab = lab_of({unit(0, i), unit(1, i), unit(2, i)});
    for (std::int64_t c = 0; c < 3; ++c) out[c * size + i] = float(lab[std::size_t(c)]);
  }
}

// Gives the numbers of `from` those of `to`, the least the least and so on; weight: how much of
// its own each keeps.
void match_order(std::span<float> from, std::span<float> to, double weight,
                 std::pmr::vector<std::pair<float, std::uint32_t>>& order) {
  order.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) order[i] = {from[i], std::uint32_t(i)};
  // As in PyTorch NaN comes last.
  const auto less = [](float a, float b) { return std::isnan(b) ? !std::isnan(a) : a < b; };
  std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    return less(a.first, b.first) || (!less(b.first, a.first) && a.second < b.second);
  });
  std::sort(to.begin(), to.end(), less);
  for (std::size_t i = 0; i < order.size(); ++i) {
    float& number = from[order[i].second];
    number = float(weight * double(number) + (1 - weight) * double(to[i]));
  }
}

void by_lab(const ColourPlanes& drawn, const ColourPlanes& reference,
            std::pmr::memory_resource& memory, const std::function<void()>& ask) {
  by_wavelet(drawn, reference, memory, ask);
  const auto size = std::size_t(drawn.size());
  Floats own(3 * size, &memory), wanted(3 * size, &memory);
  to_lab(drawn, own.data(), ask);
  to_lab(reference, wanted.data(), ask);
  std::pmr::vector<std::pair<float, std::uint32_t>> order(&memory);
  for (std::size_t c = 0; c < 3; ++c) {
    ask();
    match_order({own.data() + c * size, size}, {wanted.data() + c * size, size},
                c == 0 ? kOwnLight : 0.0, order);
  }
  for (std::size_t i = 0; i < size; ++i) {
    const Triple rgb = rgb_of({own[i], own[size + i], own[2 * size + i]});
    for (std::size_t c = 0; c < 3; ++c) drawn.plane(std::int64_t(c))[i] = float(2 * rgb[c] - 1);
  }
}

struct Moments {
  double mean = 0, deviation = 0;
};
Moments moments_of(std::span<const float> values) {
  Moments m;
  const auto count = double(values.size());
  for (const float x : values) m.mean += double(x) / count;
  double variance = 0;
  for (const float x : values) variance += (double(x) - m.mean) * (double(x) - m.mean) / count;
  m.deviation = std::sqrt(variance + kAdainEps);
  return m;
}

void by_moments(const ColourPlanes& drawn, const ColourPlanes& reference) {
  const auto size = std::size_t(drawn.size());
  for (std::int64_t c = 0; c < 3; ++c) {
    const Moments own = moments_of({drawn.plane(c), size}),
                  wanted = moments_of({reference.plane(c), size});
    for (float* x = drawn.plane(c); x != drawn.plane(c) + size; ++x)
      *x = std::clamp(
          float((double(*x) - own.mean) / own.deviation * wanted.deviation + wanted.mean), -1.0f,
          1.0f);
  }
}

}  // namespace

void match_colours(std::string_view method, const ColourPlanes& drawn,
                   const ColourPlanes& reference, std::pmr::memory_resource& memory,
                   const std::function<void()>& ask) {
  if (method == "adain")
    by_moments(drawn, reference);
  else if (method == "wavelet")
    by_wavelet(drawn, reference, memory, ask);
  else
    by_lab(drawn, reference, memory, ask);
}

std::uint64_t colour_match_bytes(std::int64_t height, std::int64_t width) {
  // by_lab(): six planes of Lab, and pixels in order.
  return std::uint64_t(height) * std::uint64_t(width) *
         (6 * sizeof(float) + sizeof(std::pair<float, std::uint32_t>));
}

}  // namespace heddle::image
