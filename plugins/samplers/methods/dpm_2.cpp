#include "plugins/samplers/sampler_algebra.h"

namespace heddle::samplers::steps {
namespace {

// DPM-Solver-2 (Lu et al. 2022): the slope at the geometric middle.
std::vector<Evaluation> dpm_2_to(const Step& step, const Landing& landing) {
  const double from = step.sigma();
  if (landing.down == 0.0) return to_denoised(step);
  const double middle = std::sqrt(from * landing.down);
  const Expr halfway = towards(own(0), from, middle);
  const Expr arrived = start() + (landing.down - from) * slope(halfway, own(1), middle);
  return {inner(0, from, halfway), last(1, middle, landed(step, landing, arrived))};
}

std::vector<Evaluation> dpm_2(const Step& step) { return dpm_2_to(step, {.down = step.next()}); }

std::vector<Evaluation> dpm_2_ancestral(const Step& step) { return dpm_2_to(step, land(step)); }

const Registered kDpm2(
    {.name = "dpm_2", .place = 90, .step = &dpm_2, .flags = HEDDLE_SAMPLER_DISCARDS_PENULTIMATE});
const Registered kDpm2Ancestral({.name = "dpm_2_ancestral",
                                 .place = 100,
                                 .step = &dpm_2_ancestral,
                                 .flags = HEDDLE_SAMPLER_DISCARDS_PENULTIMATE |
                                          HEDDLE_SAMPLER_DRAWS_NOISE});

}  // namespace
}  // namespace heddle::samplers::steps
