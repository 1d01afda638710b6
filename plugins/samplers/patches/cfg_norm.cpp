// A guided prediction no longer than the conditioned one at any position, over channels: of the
// denoised picture ("cfg_norm"), or of the noise and then whatever its length ("cfg_norm_noise").
#include <algorithm>
#include <cmath>

#include "plugins/samplers/prediction_patch.h"

namespace heddle::samplers {
namespace {

// Calls f with the sums of squares of both over the channels of a position, and the position's
// indices as first and stride.
template <class A, class B, class F>
void for_each_position(const PatchPoint& point, A&& a, B&& b, F&& f) {
  const std::size_t cells = point.item_size() / point.channels();
  for (std::size_t item = 0; item < point.items(); ++item) {
    for (std::size_t cell = 0; cell < cells; ++cell) {
      const std::size_t first = item * point.item_size() + cell;
      double squares_a = 0.0, squares_b = 0.0;
      for (std::size_t c = 0; c < point.channels(); ++c) {
        const double of_a = a(first + c * cells), of_b = b(first + c * cells);
        squares_a += of_a * of_a;
        squares_b += of_b * of_b;
      }
      f(std::sqrt(squares_a), std::sqrt(squares_b), first, cells);
    }
  }
}

void cfg_norm(PatchPoint& point, const PatchNumbers& numbers, PatchState&) {
  const double strength = numbers["strength"];
  for_each_position(
      point, [&](std::size_t i) { return double(point.conditioned[i]); },
      [&](std::size_t i) { return double(point.result[i]); },
      [&](double conditioned, double mixed, std::size_t first, std::size_t stride) {
        const double factor = std::clamp(conditioned / (mixed + 1e-8), 0.0, 1.0) * strength;
        for (std::size_t c = 0; c < point.channels(); ++c)
          point.result[first + c * stride] = float(point.result[first + c * stride] * factor);
      });
}

void cfg_norm_noise(PatchPoint& point, const PatchNumbers& numbers, PatchState&) {
  const double strength = numbers["strength"];
  mix_plainly(point);
  for_each_position(
      point, [&](std::size_t i) { return double(point.x[i]) - point.conditioned[i]; },
      [&](std::size_t i) { return double(point.x[i]) - point.result[i]; },
      [&](double conditioned, double mixed, std::size_t first, std::size_t stride) {
        const double factor = mixed == 0.0 ? 1.0 : conditioned / mixed;
        for (std::size_t c = 0; c < point.channels(); ++c) {
          float& value = point.result[first + c * stride];
          const double x = point.x[first + c * stride], noise = x - value;
          value = float(x - noise * (strength * factor + (1.0 - strength)));
        }
      });
}

const RegisteredPatch kCfgNorm({"cfg_norm", PredictionPatch::Place::kAfter, &cfg_norm});
const RegisteredPatch kCfgNormNoise({"cfg_norm_noise", PredictionPatch::Place::kMix,
                                     &cfg_norm_noise});

}  // namespace
}  // namespace heddle::samplers
