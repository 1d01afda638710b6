// Guidance on what a v-prediction model would say, whose deviation is brought back towards that of
// the conditioned one ("Common Diffusion Noise Schedules and Sample Steps are Flawed", Lin et al.
// 2023, section 3.4).
#include <cmath>

#include "plugins/samplers/prediction_patch.h"

namespace heddle::samplers {
namespace {

// Of one item, with n - 1 in the denominator.
double deviation(std::span<const double> values) {
  double sum = 0.0, squares = 0.0;
  for (const double value : values) sum += value;
  const double mean = sum / double(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / double(values.size() - 1));
}

void rescale_cfg(PatchPoint& point, const PatchNumbers& numbers, PatchState&) {
  const double multiplier = numbers["multiplier"], variance = point.sigma * point.sigma + 1.0;
  const double to_v = std::sqrt(variance) / point.sigma;
  const std::size_t size = point.item_size();
  std::pmr::vector<double> positive(size, point.memory), mixed(size, point.memory);
  for (std::size_t item = 0; item < point.items(); ++item) {
    const std::size_t begin = item * size;
    for (std::size_t i = 0; i < size; ++i) {
      const double x = double(point.x[begin + i]) / variance;
      positive[i] = (x - point.conditioned[begin + i]) * to_v;
      const double negative = (x - point.unconditioned[begin + i]) * to_v;
      mixed[i] = negative + point.cfg * (positive[i] - negative);
    }
    const double ratio = deviation(positive) / deviation(mixed);
    for (std::size_t i = 0; i < size; ++i) {
      const double v = multiplier * mixed[i] * ratio + (1.0 - multiplier) * mixed[i];
      point.result[begin + i] = float(double(point.x[begin + i]) / variance - v / to_v);
    }
  }
}

const RegisteredPatch kRescaleCfg({"rescale_cfg", PredictionPatch::Place::kMix, &rescale_cfg});

}  // namespace
}  // namespace heddle::samplers
