// Guidance of pictures and their sound by numbers of their own (LTXVDualCFGGuider): the pictures by
// the guider's cfg, the sound by `audio_cfg`. Without sound other patches guide as they would.
#include <algorithm>

#include "plugins/samplers/prediction_patch.h"

namespace heddle::samplers {
namespace {

void sound_cfg(PatchPoint& point, const PatchNumbers& numbers, PatchState&) {
  const std::size_t size = point.item_size(), pictures = std::min(size, point.pictures);
  const auto of_pictures = float(point.cfg), of_sound = float(numbers["audio_cfg"]);
  for (std::size_t i = 0; i < point.result.size(); ++i) {
    const float cfg = i % size < pictures ? of_pictures : of_sound;
    point.result[i] =
        point.unconditioned[i] + cfg * (point.conditioned[i] - point.unconditioned[i]);
  }
}

const RegisteredPatch kSoundCfg({"sound_cfg", PredictionPatch::Place::kMix, &sound_cfg,
                                 /*looks_again=*/false, /*needs_negative=*/true,
                                 /*of_sound=*/true});

}  // namespace
}  // namespace heddle::samplers
