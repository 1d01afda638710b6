#include "plugins/blocks/mel_bands.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace heddle::blocks {
namespace {

// Slaney's scale: linear up to 1000 Hz, then 27 bands to a factor of 6.4.
constexpr double kMelWidth = 200.0 / 3, kMelKnee = 1000, kMelFactor = 6.4, kMelSteps = 27;

double mel_of(double frequency) {
  if (frequency < kMelKnee) return frequency / kMelWidth;
  return kMelKnee / kMelWidth + std::log(frequency / kMelKnee) * kMelSteps / std::log(kMelFactor);
}
double frequency_of(double mel) {
  const double knee = kMelKnee / kMelWidth;
  if (mel < knee) return mel * kMelWidth;
  return kMelKnee * std::exp((mel - knee) * std::log(kMelFactor) / kMelSteps);
}

}  // namespace

std::vector<MelBand> mel_bands(std::int64_t rate, std::int64_t window, std::int64_t bands) {
  std::vector<MelBand> all;
  const double end = double(rate / 2), step = mel_of(end) / double(bands + 1),
               apart = end / double(window / 2);
  for (std::int64_t band = 0; band < bands; ++band) {
    const double left = frequency_of(step * double(band)),
                 middle = frequency_of(step * double(band + 1)),
                 right = frequency_of(step * double(band + 2)), height = 2 / (right - left);
    MelBand made;
    for (std::int64_t k = 0; k <= window / 2; ++k) {
      const double at = apart * double(k),
                   share = std::min((at - left) / (middle - left), (right - at) / (right - middle));
      if (share <= 0) continue;
      if (made.shares.empty()) made.begin = std::size_t(k);
      made.shares.push_back(share * height);
    }
    all.push_back(std::move(made));
  }
  return all;
}

}  // namespace heddle::blocks
