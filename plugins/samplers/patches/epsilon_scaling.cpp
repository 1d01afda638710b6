// The predicted noise divided by a factor ("Elucidating the Exposure Bias in Diffusion Models",
// Ning et al. 2023).
#include "plugins/samplers/prediction_patch.h"

namespace heddle::samplers {
namespace {

void epsilon_scaling(PatchPoint& point, const PatchNumbers& numbers, PatchState&) {
  const double factor = numbers["scaling_factor"] == 0.0 ? 1e-9 : numbers["scaling_factor"];
  for (std::size_t i = 0; i < point.result.size(); ++i)
    point.result[i] = float(point.x[i] - (double(point.x[i]) - point.result[i]) / factor);
}

const RegisteredPatch kEpsilonScaling({"epsilon_scaling", PredictionPatch::Place::kAfter,
                                       &epsilon_scaling});

}  // namespace
}  // namespace heddle::samplers
