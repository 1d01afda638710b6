// Between guidance and the conditioned prediction times cfg, the nearer to guidance the more alike
// the two are: by the mean over positions of the cosine of signed roots, over channels.
#include <algorithm>
#include <cmath>

#include "plugins/samplers/prediction_patch.h"

namespace heddle::samplers {
namespace {

double signed_root(double value) { return std::copysign(std::sqrt(std::abs(value)), value); }

void mahiro(PatchPoint& point, const PatchNumbers&, PatchState&) {
  const std::size_t cells = point.item_size() / point.channels();
  const double cfg = point.cfg;
  double sum = 0.0;
  for (std::size_t item = 0; item < point.items(); ++item) {
    for (std::size_t cell = 0; cell < cells; ++cell) {
      double product = 0.0, squares_u = 0.0, squares_m = 0.0;
      for (std::size_t c = 0; c < point.channels(); ++c) {
        const std::size_t i = item * point.item_size() + c * cells + cell;
        const double u = signed_root(point.unconditioned[i] * cfg);
        const double m = signed_root((point.conditioned[i] * cfg + point.result[i]) / 2.0);
        product += u * m;
        squares_u += u * u;
        squares_m += m * m;
      }
      sum += product / std::sqrt(std::max(squares_u, 1e-16) * std::max(squares_m, 1e-16));
    }
  }
  const double alike = 2.0 * (sum / double(point.items() * cells) + 1.0);
  for (std::size_t i = 0; i < point.result.size(); ++i) {
    const double leap = point.conditioned[i] * cfg;
    point.result[i] = float((alike * point.result[i] + (4.0 - alike) * leap) / 4.0);
  }
}

const RegisteredPatch kMahiro({"mahiro", PredictionPatch::Place::kAfter, &mahiro});

}  // namespace
}  // namespace heddle::samplers
