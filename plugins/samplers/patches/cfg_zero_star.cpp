// CFG-Zero* (Fan et al. 2025): the unconditioned prediction is scaled to fit the conditioned one
// best, in the noise of each item.
#include "plugins/samplers/prediction_patch.h"

namespace heddle::samplers {
namespace {

void cfg_zero_star(PatchPoint& point, const PatchNumbers&, PatchState&) {
  const std::size_t size = point.item_size();
  for (std::size_t item = 0; item < point.items(); ++item) {
    double product = 0.0, squares = 0.0;
    for (std::size_t i = item * size; i < (item + 1) * size; ++i) {
      const double negative = double(point.x[i]) - point.unconditioned[i];
      product += (double(point.x[i]) - point.conditioned[i]) * negative;
      squares += negative * negative;
    }
    const double scale = product / (squares + 1e-8);
    const double factor = (scale - 1.0) + point.cfg * (1.0 - scale);
    for (std::size_t i = item * size; i < (item + 1) * size; ++i)
      point.result[i] = float(point.result[i] + point.unconditioned[i] * factor);
  }
}

const RegisteredPatch kCfgZeroStar({"cfg_zero_star", PredictionPatch::Place::kAfter,
                                    &cfg_zero_star});

}  // namespace
}  // namespace heddle::samplers
