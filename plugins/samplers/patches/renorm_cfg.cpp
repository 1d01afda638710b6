// Guidance below a noise level, whose length is held to that of the conditioned prediction, as
// Lumina-Image 2.0 is drawn. ComfyUI compares the lengths of a batch as one and so takes batches of
// one; here each item has its own.
#include <algorithm>
#include <cmath>

#include "plugins/samplers/prediction_patch.h"

namespace heddle::samplers {
namespace {

void renorm_cfg(PatchPoint& point, const PatchNumbers& numbers, PatchState&) {
  if (!(float(point.sigma) < float(numbers["cfg_trunc"]))) {
    std::copy(point.conditioned.begin(), point.conditioned.end(), point.result.begin());
    return;
  }
  mix_plainly(point);
  const double renorm = numbers["renorm_cfg"];
  if (!(renorm > 0.0)) return;
  const std::size_t size = point.item_size();
  for (std::size_t item = 0; item < point.items(); ++item) {
    double conditioned = 0.0, mixed = 0.0;
    for (std::size_t i = item * size; i < (item + 1) * size; ++i) {
      conditioned += double(point.conditioned[i]) * point.conditioned[i];
      mixed += double(point.result[i]) * point.result[i];
    }
    const double most = std::sqrt(conditioned) * renorm, there = std::sqrt(mixed);
    if (there < most || there == 0.0) continue;
    const auto factor = float(most / there);
    for (std::size_t i = item * size; i < (item + 1) * size; ++i) point.result[i] *= factor;
  }
}

const RegisteredPatch kRenormCfg({"renorm_cfg", PredictionPatch::Place::kMix, &renorm_cfg});

}  // namespace
}  // namespace heddle::samplers
