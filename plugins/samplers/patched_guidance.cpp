#include "patched_guidance.h"

namespace heddle::samplers {
namespace {

constexpr std::size_t kPositiveList = 0, kNegativeList = 1, kThirdList = 2, kFirstOwnList = 3;

// ComfyUI leaves a prediction out of the guidance by a cfg of exactly 1.
double exact(double cfg) { return guidance(cfg).conditioned; }

}  // namespace

PatchedGuidance::PatchedGuidance(const GuidePlan& plan, const ModelSampling& sampling,
                                 std::pmr::memory_resource& memory)
    : plan_(plan), sampling_(sampling) {
  for (const PatchChoice& choice : plan.patches())
    patches_.push_back({choice.patch, choice.numbers, PatchState(&memory), {}});
}

std::pmr::vector<float> PatchedGuidance::operator()(GuidedPoint& at,
                                                    std::pmr::memory_resource& memory) {
  const bool has_negative = !at.predictions[kNegativeList].empty();
  for (std::size_t list = 0; list < kFirstOwnList; ++list)
    if (at.predictions[list].empty()) at.predictions[list].assign(at.x.size(), 0.0f);
  std::pmr::vector<float> result(at.x.size(), &memory);
  std::pmr::vector<float>&positive = at.predictions[kPositiveList],
  &negative = at.predictions[kNegativeList], &third = at.predictions[kThirdList];
  std::size_t own = kFirstOwnList;
  for (std::size_t i = 0; i < patches_.size(); ++i)
    if (plan_.patches()[i].has_own()) patches_[i].own = at.predictions[own++];
  PatchPoint point{.shape = at.shape,
                   .sigma = at.sigma,
                   .cfg = exact(plan_.cfg_at(at.sigma)),
                   .sampling = &sampling_,
                   .x = at.x,
                   .conditioned = positive,
                   .unconditioned = negative,
                   .has_unconditioned = has_negative,
                   .own = {},
                   .result = result,
                   .attended = at.attended,
                   .look_again = at.look_again,
                   .pictures = at.pictures,
                   .memory = &memory};
  const double cfg = point.cfg, number = exact(plan_.guide().number);
  switch (plan_.guide().mix) {
    case Mix::kCfg:
      apply_patches(point, patches_);
      break;
    case Mix::kPerpNeg: {
      point.own = third;
      mix_perpendicular(point, plan_.guide().number);
      for (ActivePatch& active : patches_)
        if (active.patch->place == PredictionPatch::Place::kAfter)
          active.patch->apply(point, active.numbers, active.state);
      break;
    }
    case Mix::kDual:
      point.conditioned = third;
      point.cfg = number;
      apply_behind(point, patches_);
      for (std::size_t i = 0; i < result.size(); ++i)
        result[i] += (positive[i] - third[i]) * float(cfg);
      break;
    case Mix::kDualNested:
      point.unconditioned = third;
      apply_behind(point, patches_);
      for (std::size_t i = 0; i < result.size(); ++i)
        result[i] = negative[i] + float(number) * (result[i] - negative[i]);
      break;
  }
  return result;
}

void PatchedGuidance::archive(StateArchive& state) {
  for (std::size_t i = 0; i < patches_.size(); ++i) {
    const std::string name = "patch " + std::to_string(i) + " ";
    state(name + "kept", patches_[i].state.kept);
    state(name + "sigma", patches_[i].state.sigma);
  }
}

}  // namespace heddle::samplers
