// A latent operation on the difference of the two predictions, in a part of the run.
#include "plugins/samplers/latent_operation.h"

namespace heddle::samplers {
namespace {

void latent_operation_cfg(PatchPoint& point, const PatchNumbers& numbers, PatchState&) {
  const NoiseLevels& levels = point.sampling->levels;
  const auto sigma = float(point.sigma);
  if (sigma > float(levels.percent_to_sigma(numbers["start_percent"])) ||
      sigma < float(levels.percent_to_sigma(numbers["end_percent"])))
    return;
  for (std::size_t i = 0; i < point.conditioned.size(); ++i)
    point.conditioned[i] -= point.unconditioned[i];
  apply_latent_operation(point.conditioned, point.shape, numbers, *point.memory);
  for (std::size_t i = 0; i < point.conditioned.size(); ++i)
    point.conditioned[i] += point.unconditioned[i];
}

const RegisteredPatch kLatentOperationCfg({"latent_operation_cfg", PredictionPatch::Place::kBefore,
                                           &latent_operation_cfg});

}  // namespace
}  // namespace heddle::samplers
