#include "prediction_patch.h"

namespace heddle::samplers {
namespace {

std::vector<PredictionPatch>& registered_patches() {
  static std::vector<PredictionPatch> patches;
  return patches;
}

void run_all(PatchPoint& point, std::span<ActivePatch> patches, PredictionPatch::Place place) {
  for (ActivePatch& active : patches) {
    if (active.patch->place != place) continue;
    point.own = active.own;
    active.patch->apply(point, active.numbers, active.state);
  }
}

}  // namespace

double PatchNumbers::operator[](std::string_view name) const {
  for (const auto& [known, value] : numbers)
    if (known == name) return value;
  return 0.0;
}

RegisteredPatch::RegisteredPatch(const PredictionPatch& patch) {
  registered_patches().push_back(patch);
}

const PredictionPatch* find_patch(std::string_view name) {
  for (const PredictionPatch& patch : registered_patches())
    if (name == patch.name) return &patch;
  return nullptr;
}

void mix_plainly(PatchPoint& point) {
  const auto cfg = float(point.cfg);
  for (std::size_t i = 0; i < point.result.size(); ++i)
    point.result[i] =
        point.unconditioned[i] + (point.conditioned[i] - point.unconditioned[i]) * cfg;
}

void apply_patches(PatchPoint& point, std::span<ActivePatch> patches) {
  run_all(point, patches, PredictionPatch::Place::kBefore);
  apply_behind(point, patches);
}

void apply_behind(PatchPoint& point, std::span<ActivePatch> patches) {
  ActivePatch* mix = nullptr;
  for (ActivePatch& active : patches)
    if (active.patch->place == PredictionPatch::Place::kMix &&
        !(active.patch->of_sound && point.pictures == 0))
      mix = &active;
  if (mix == nullptr)
    mix_plainly(point);
  else
    run_all(point, {mix, 1}, PredictionPatch::Place::kMix);
  run_all(point, patches, PredictionPatch::Place::kAfter);
}

void mix_perpendicular(PatchPoint& point, double neg_scale) {
  double product = 0.0, squares = 0.0;
  for (std::size_t i = 0; i < point.result.size(); ++i) {
    const double p = double(point.conditioned[i]) - point.own[i];
    product += (double(point.unconditioned[i]) - point.own[i]) * p;
    squares += p * p;
  }
  const double share = product / squares;
  for (std::size_t i = 0; i < point.result.size(); ++i) {
    const double p = double(point.conditioned[i]) - point.own[i];
    const double q = double(point.unconditioned[i]) - point.own[i];
    point.result[i] = float(point.own[i] + point.cfg * (p - neg_scale * (q - share * p)));
  }
}

}  // namespace heddle::samplers
