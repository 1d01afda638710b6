// Skip-layer guidance: away from what the model predicts without some of its blocks. Formula:
// ComfyUI's.
#include <cmath>

#include "plugins/samplers/prediction_patch.h"

namespace heddle::samplers {
namespace {

double deviation_of(std::span<const float> values) {
  double sum = 0.0, squares = 0.0;
  for (const float value : values) sum += value;
  const double mean = sum / double(values.size());
  for (const float value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / double(values.size() - 1));
}

void skip_layers(PatchPoint& point, const PatchNumbers& numbers, PatchState&) {
  if (point.own.empty()) return;
  const auto scale = float(numbers["scale"]);
  for (std::size_t i = 0; i < point.result.size(); ++i)
    point.result[i] += (point.conditioned[i] - point.own[i]) * scale;
  const double part = numbers["rescaling_scale"];
  if (part == 0.0) return;
  const double ratio = deviation_of(point.conditioned) / deviation_of(point.result);
  const auto factor = float(part * ratio + (1.0 - part));
  for (float& value : point.result) value *= factor;
}

const RegisteredPatch kSkipLayers({"skip_layers", PredictionPatch::Place::kAfter, &skip_layers});

}  // namespace
}  // namespace heddle::samplers
