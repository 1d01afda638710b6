// Adaptive projected guidance (Sadat et al. 2024, arXiv 2410.02416): the difference of the two
// predictions with momentum, cut to a length, and with its part along the conditioned prediction
// scaled. ComfyUI adds a share of 1 / cfg of the plain difference.
#include <algorithm>
#include <cmath>

#include "plugins/samplers/prediction_patch.h"

namespace heddle::samplers {
namespace {

void apg(PatchPoint& point, const PatchNumbers& numbers, PatchState& state) {
  const double eta = numbers["eta"], most = numbers["norm_threshold"];
  const auto momentum = float(numbers["momentum"]);
  const std::size_t count = point.x.size();
  std::pmr::vector<float> guidance(count, point.memory);
  for (std::size_t i = 0; i < count; ++i)
    guidance[i] = point.conditioned[i] - point.unconditioned[i];
  // A level above the last one begins another run.
  if (state.sigma >= 0.0 && point.sigma > state.sigma) state.kept.clear();
  state.sigma = point.sigma;
  if (momentum != 0.0f) {
    state.kept.resize(count, 0.0f);
    for (std::size_t i = 0; i < count; ++i)
      guidance[i] = state.kept[i] = momentum * state.kept[i] + guidance[i];
  }
  // ComfyUI takes lengths over the last three axes.
  std::size_t group = point.item_size();
  for (std::size_t axis = 1; axis + 3 < point.shape.size(); ++axis)
    group /= std::size_t(point.shape[axis]);
  for (std::size_t begin = 0; begin < count; begin += group) {
    double squares = 0.0, conditioned = 0.0, product = 0.0;
    for (std::size_t i = begin; i < begin + group; ++i) {
      squares += double(guidance[i]) * guidance[i];
      conditioned += double(point.conditioned[i]) * point.conditioned[i];
      product += double(guidance[i]) * point.conditioned[i];
    }
    const double scale =
        most > 0.0 && squares > 0.0 ? std::min(1.0, most / std::sqrt(squares)) : 1.0;
    const double length = std::max(std::sqrt(conditioned), 1e-12);
    const double along = scale * product / (length * length);
    for (std::size_t i = begin; i < begin + group; ++i) {
      const double parallel = along * point.conditioned[i];
      const double changed = scale * guidance[i] - parallel + eta * parallel;
      const double plain = double(point.conditioned[i]) - point.unconditioned[i];
      point.conditioned[i] = float(point.unconditioned[i] + changed + plain / point.cfg);
    }
  }
}

const RegisteredPatch kApg({"apg", PredictionPatch::Place::kBefore, &apg});

}  // namespace
}  // namespace heddle::samplers
