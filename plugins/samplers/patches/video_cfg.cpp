// A cfg of its own for each item of the batch, which is a frame: rising from the first to the last,
// or from the first to the middle and back.
#include <cmath>

#include "plugins/samplers/prediction_patch.h"

namespace heddle::samplers {
namespace {

// `part`: where an item lies, 0 to 1.
template <class F>
void mix_by_item(PatchPoint& point, double lowest, F&& part) {
  const std::size_t size = point.item_size(), items = point.items();
  for (std::size_t item = 0; item < items; ++item) {
    const double at = items == 1 ? 0.0 : double(item) / double(items - 1);
    const double cfg = lowest + (point.cfg - lowest) * part(at);
    for (std::size_t i = item * size; i < (item + 1) * size; ++i)
      point.result[i] = float(point.unconditioned[i] + cfg * (double(point.conditioned[i]) -
                                                              double(point.unconditioned[i])));
  }
}

void video_linear_cfg(PatchPoint& point, const PatchNumbers& numbers, PatchState&) {
  mix_by_item(point, numbers["min_cfg"], [](double at) { return at; });
}

void video_triangle_cfg(PatchPoint& point, const PatchNumbers& numbers, PatchState&) {
  mix_by_item(point, numbers["min_cfg"],
              [](double at) { return 2.0 * std::abs(at - std::floor(at + 0.5)); });
}

const RegisteredPatch kVideoLinearCfg({"video_linear_cfg", PredictionPatch::Place::kMix,
                                       &video_linear_cfg});
const RegisteredPatch kVideoTriangleCfg({"video_triangle_cfg", PredictionPatch::Place::kMix,
                                         &video_triangle_cfg});

}  // namespace
}  // namespace heddle::samplers
