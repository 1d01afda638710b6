#include "plugins/image/lab.h"

#include <algorithm>
#include <cmath>

namespace heddle::image {
namespace {

using Matrix = double[3][3];

constexpr Matrix kToXyz = {
    {0.412453, 0.357580, 0.180423}, {0.212671, 0.715160, 0.072169}, {0.019334, 0.119193, 0.950227}};
constexpr Matrix kFromXyz = {{3.2404813432005266, -1.5371515162713185, -0.4985363261688878},
                             {-0.9692549499965682, 1.8759900014898907, 0.0415559265582928},
                             {0.0556466391351772, -0.2040413383665112, 1.0573110696453443}};
constexpr double kWhite[3] = {0.95047, 1.0, 1.08883};
constexpr double kSlope = 7.787, kOffset = 4.0 / 29.0;

Colour transformed(const Matrix& m, const Colour& v) {
  Colour out{};
  for (std::size_t r = 0; r < 3; ++r)
    for (std::size_t c = 0; c < 3; ++c) out[r] += m[r][c] * v[c];
  return out;
}

double linear_of(double x) { return x > 0.04045 ? std::pow((x + 0.055) / 1.055, 2.4) : x / 12.92; }
double gamma_of(double x) {
  return x > 0.0031308 ? 1.055 * std::pow(x, 1 / 2.4) - 0.055 : 12.92 * x;
}

}  // namespace

Colour lab_of_rgb(const Colour& rgb) {
  Colour f = transformed(kToXyz, {linear_of(rgb[0]), linear_of(rgb[1]), linear_of(rgb[2])});
  for (std::size_t i = 0; i < 3; ++i) {
    const double t = f[i] / kWhite[i];
    f[i] = t > 0.008856 ? std::cbrt(t) : kSlope * t + kOffset;
  }
  return {116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])};
}

Colour rgb_of_lab(const Colour& lab) {
  const double y = (lab[0] + 16) / 116;
  Colour xyz = {lab[1] / 500 + y, y, std::max(y - lab[2] / 200, 0.0)};
  for (std::size_t i = 0; i < 3; ++i) {
    const double f = xyz[i];
    xyz[i] = kWhite[i] * (f > 0.2068966 ? f * f * f : (f - kOffset) / kSlope);
  }
  Colour rgb = transformed(kFromXyz, xyz);
  for (double& x : rgb) x = std::clamp(gamma_of(x), 0.0, 1.0);
  return rgb;
}

}  // namespace heddle::image
