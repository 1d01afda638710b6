#include "plugins/samplers/prediction_patch.h"

namespace heddle::samplers {
namespace {

void perp_neg(PatchPoint& point, const PatchNumbers& numbers, PatchState&) {
  mix_perpendicular(point, numbers["neg_scale"]);
}

const RegisteredPatch kPerpNeg({"perp_neg", PredictionPatch::Place::kMix, &perp_neg});

}  // namespace
}  // namespace heddle::samplers
