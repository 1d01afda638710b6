// Towards the voice of a reference, away from what the model predicts without it (ID-LoRA).
// Formula: ComfyUI's, whose window is open at its end.
#include "plugins/samplers/prediction_patch.h"

namespace heddle::samplers {
namespace {

void voice_guidance(PatchPoint& point, const PatchNumbers& numbers, PatchState&) {
  const double end = point.sampling->levels.percent_to_sigma(numbers["end_percent"]);
  if (point.own.empty() || float(point.sigma) <= float(end)) return;
  const auto scale = float(numbers["scale"]);
  for (std::size_t i = 0; i < point.result.size(); ++i)
    point.result[i] += (point.conditioned[i] - point.own[i]) * scale;
}

const RegisteredPatch kVoiceGuidance({"voice_guidance", PredictionPatch::Place::kAfter,
                                      &voice_guidance});

}  // namespace
}  // namespace heddle::samplers
