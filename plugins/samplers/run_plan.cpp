#include "run_plan.h"

#include <algorithm>

#include "user_error.h"

namespace heddle::samplers {
namespace {

// Equal neighbours make steps of no length, in which multistep formulas divide by 0.
Sigmas without_repeats(Sigmas sigmas) {
  sigmas.erase(std::unique(sigmas.begin(), sigmas.end()), sigmas.end());
  return sigmas;
}

}  // namespace

RunPlan plan_levels(const heddle_sampler_desc& sampler, const SamplerChoice& choice,
                    const Sigmas& sigmas, const ModelSampling& sampling) {
  RunPlan plan;
  plan.levels = without_repeats(sigmas);
  const bool finite_first = (sampler.flags & HEDDLE_SAMPLER_FINITE_FIRST_LEVEL) != 0;
  const Sigmas visited =
      finite_first ? with_finite_first_level(plan.levels, sampling.levels) : plan.levels;
  const heddle_sampler_run run =
      sampler_run(choice, visited, sampling.prediction == Prediction::kFlow);
  plan.steps = plan_run(sampler, run);
  plan.end_scale = with_user_errors(
      [&] { return inverse_noise_scaling(sampling.prediction, final_sigma(sampler, run)); });
  return plan;
}

}  // namespace heddle::samplers
