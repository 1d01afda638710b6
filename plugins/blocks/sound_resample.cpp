#include "plugins/blocks/sound_resample.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <string>

#include <heddle/checked.hpp>

namespace heddle::blocks {
namespace {

constexpr double kZeroCrossings = 6, kBand = 0.99;

// The filter's height so many points of the sound from its middle; base: its share of the band.
double sinc_filter(double distance, double base) {
  const double t = std::clamp(distance * base, -kZeroCrossings, kZeroCrossings),
               angle = t * std::numbers::pi, window = std::cos(angle / kZeroCrossings / 2);
  return base * window * window * (angle == 0 ? 1 : std::sin(angle) / angle);
}

}  // namespace

std::int64_t resampled_count(std::int64_t count, std::int64_t from, std::int64_t to) {
  constexpr std::int64_t kMostRate = 1 << 24;
  if (from > kMostRate || to > kMostRate)
    throw Error(HEDDLE_INVALID_ARGUMENT, "audio: a sound of " + std::to_string(from) +
                                             " points a second, to be made one of " +
                                             std::to_string(to) + ". Rates go up to 2^24.");
  const std::int64_t shared = std::gcd(from, to), step = from / shared;
  return (checked_product({count, to / shared}, "the sound") + step - 1) / step;
}

void resample_sound(std::span<const float> sound, std::int64_t from, std::int64_t to,
                    std::span<float> out) {
  const std::int64_t shared = std::gcd(from, to), step = from / shared, made = to / shared;
  if (step == made) {
    std::copy(sound.begin(), sound.end(), out.begin());
    return;
  }
  // Point i of what is made lies at i * step / made of the sound.
  const double base = kBand * double(std::min(step, made)) / double(step);
  const auto reach = std::int64_t(std::ceil(kZeroCrossings / base));
  std::vector<float> taps(std::size_t(2 * reach + 1));
  const auto length = std::int64_t(sound.size());
  for (std::int64_t place = 0; place < std::min(made, std::int64_t(out.size())); ++place) {
    const std::int64_t whole = place * step / made;
    const double rest = double(place * step % made) / double(made);
    for (std::int64_t k = -reach; k <= reach; ++k)
      taps[std::size_t(k + reach)] = float(sinc_filter(double(k) - rest, base));
    for (std::int64_t i = place, middle = whole; i < std::int64_t(out.size());
         i += made, middle += step) {
      const std::int64_t begin = std::max<std::int64_t>(0, middle - reach),
                         end = std::min(length, middle + reach + 1);
      double sum = 0;
      for (std::int64_t at = begin; at < end; ++at)
        sum += double(sound[std::size_t(at)]) * taps[std::size_t(at - middle + reach)];
      out[std::size_t(i)] = float(sum);
    }
  }
}

}  // namespace heddle::blocks
