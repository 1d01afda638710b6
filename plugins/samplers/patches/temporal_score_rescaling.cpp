// Temporal score rescaling (arXiv 2510.01184, equation 6): the score is scaled by a ratio of the
// signal-to-noise ratio of the level.
#include <cmath>

#include "plugins/samplers/prediction_patch.h"

namespace heddle::samplers {
namespace {

void temporal_score_rescaling(PatchPoint& point, const PatchNumbers& numbers, PatchState&) {
  const double k = numbers["tsr_k"], variance = numbers["tsr_sigma"] * numbers["tsr_sigma"];
  if (k == 1.0 || point.sigma == 0.0) return;
  const bool flow = point.sampling->prediction == Prediction::kFlow;
  const double alpha = flow ? 1.0 - point.sigma : 1.0;
  if (!(alpha > 0.0)) return;  // there is no signal
  const double snr = (alpha / point.sigma) * (alpha / point.sigma);
  const double ratio = (snr * variance + 1.0) / (snr * variance / k + 1.0);
  for (std::size_t i = 0; i < point.result.size(); ++i) {
    const double from = point.x[i] / alpha;
    point.result[i] = float(from + ratio * (point.result[i] - from));
  }
}

const RegisteredPatch kTemporalScoreRescaling({"temporal_score_rescaling",
                                               PredictionPatch::Place::kAfter,
                                               &temporal_score_rescaling});

}  // namespace
}  // namespace heddle::samplers
