// Tangential damping (Kwon et al. 2025, arXiv 2503.18137): of the unconditioned noise only the part
// along the first right singular vector of both noises stays. That vector is a mix of the two rows,
// by the first eigenvector of their matrix of products.
#include <cmath>

#include "plugins/samplers/prediction_patch.h"

namespace heddle::samplers {
namespace {

void tcfg(PatchPoint& point, const PatchNumbers&, PatchState&) {
  if (!point.has_unconditioned) return;
  const std::size_t size = point.item_size();
  for (std::size_t item = 0; item < point.items(); ++item) {
    const auto negative = [&](std::size_t i) {
      return double(point.x[i]) - point.unconditioned[i];
    };
    const auto positive = [&](std::size_t i) { return double(point.x[i]) - point.conditioned[i]; };
    double nn = 0.0, np = 0.0, pp = 0.0;
    for (std::size_t i = item * size; i < (item + 1) * size; ++i) {
      nn += negative(i) * negative(i);
      np += negative(i) * positive(i);
      pp += positive(i) * positive(i);
    }
    const double half = 0.5 * (nn - pp), root = std::hypot(half, np);
    const double largest = 0.5 * (nn + pp) + root;
    if (!(largest > 0.0)) continue;
    // (a, b) is the eigenvector: of its two forms the one that does not cancel.
    double a = half >= 0.0 ? half + root : np, b = half >= 0.0 ? np : root - half;
    const double length = std::hypot(a, b);
    if (length > 0.0) {
      a /= length;
      b /= length;
    } else {
      a = 1.0;
    }
    // v = (a n + b p) / sqrt(largest), and n v = (a nn + b np) / sqrt(largest).
    const double share = (a * nn + b * np) / largest;
    for (std::size_t i = item * size; i < (item + 1) * size; ++i)
      point.unconditioned[i] = float(point.x[i] - share * (a * negative(i) + b * positive(i)));
  }
}

const RegisteredPatch kTcfg({"tcfg", PredictionPatch::Place::kBefore, &tcfg});

}  // namespace
}  // namespace heddle::samplers
