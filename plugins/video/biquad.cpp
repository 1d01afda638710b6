#include "plugins/video/biquad.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace heddle::video {
namespace {

struct Terms {
  double gain, cosine, alpha;
  Terms(const Band& band, double sample_rate) {
    const double w = 2 * std::numbers::pi * band.frequency / sample_rate;
    gain = std::pow(10.0, band.decibels / 40);
    cosine = std::cos(w);
    alpha = std::sin(w) / 2 / band.quality;
  }
};

Biquad divided(double b0, double b1, double b2, double a0, double a1, double a2) {
  return {b0 / a0, b1 / a0, b2 / a0, a1 / a0, a2 / a0};
}

// A low shelf; the high one is its mirror image, with the other sign of the cosine and of the odd
// coefficients.
Biquad shelf(const Terms& t, double sign) {
  const double root = 2 * std::sqrt(t.gain) * t.alpha;
  const double less = (t.gain - 1) * t.cosine * sign, more = (t.gain + 1) * t.cosine * sign;
  return divided(t.gain * (t.gain + 1 - less + root), sign * 2 * t.gain * (t.gain - 1 - more),
                 t.gain * (t.gain + 1 - less - root), t.gain + 1 + less + root,
                 -sign * 2 * (t.gain - 1 + more), t.gain + 1 + less - root);
}

}  // namespace

Biquad low_shelf(const Band& band, double sample_rate) {
  return shelf(Terms(band, sample_rate), 1);
}
Biquad high_shelf(const Band& band, double sample_rate) {
  return shelf(Terms(band, sample_rate), -1);
}
Biquad peak(const Band& band, double sample_rate) {
  const Terms t(band, sample_rate);
  return divided(1 + t.alpha * t.gain, -2 * t.cosine, 1 - t.alpha * t.gain, 1 + t.alpha / t.gain,
                 -2 * t.cosine, 1 - t.alpha / t.gain);
}

void filter(const Biquad& q, std::span<float> samples) {
  double x1 = 0, x2 = 0, y1 = 0, y2 = 0;
  for (float& sample : samples) {
    const double x = sample;
    const double y = q.b0 * x + q.b1 * x1 + q.b2 * x2 - q.a1 * y1 - q.a2 * y2;
    x2 = x1;
    x1 = x;
    y2 = y1;
    y1 = y;
    sample = static_cast<float>(std::clamp(y, -1.0, 1.0));
  }
}

}  // namespace heddle::video
