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

std::size_t RunPlan::evaluations() const {
  // An adaptive run of order 3 from noise to image at ComfyUI's tolerances.
  constexpr std::size_t kAdaptive = 60;
  if (steps.empty() && levels.size() > 1) return kAdaptive;
  std::size_t count = 0;
  for (const auto& step : steps) count += step.size();
  return count;
}

std::vector<double> RunPlan::sigmas() const {
  std::vector<double> sigmas;
  for (const auto& step : steps)
    for (const Evaluation& evaluation : step) sigmas.push_back(evaluation.sigma);
  sigmas.resize(evaluations(), levels.front());
  return sigmas;
}

double highest_of(const RunPlan& run) { return *std::ranges::max_element(run.levels); }

std::size_t kept_of(const SamplerPlan& steps, std::int32_t of) {
  std::size_t kept = 0;
  for (const auto& step : steps) {
    for (const Evaluation& evaluation : step) {
      for (const Combination* sum : {&evaluation.next, &evaluation.start}) {
        for (const heddle_sampler_term& term : *sum)
          if (term.of == of) kept = std::max(kept, std::size_t{term.age} + 1);
      }
    }
  }
  return kept;
}

RunPlan plan_levels(const heddle_sampler_desc& sampler, const SamplerChoice& choice,
                    const Sigmas& sigmas, const ModelSampling& sampling) {
  RunPlan plan;
  plan.levels = without_repeats(sigmas);
  const bool finite_first = (sampler.flags & HEDDLE_SAMPLER_FINITE_FIRST_LEVEL) != 0;
  plan.told = std::make_unique<ToldRun>(
      choice, finite_first ? with_finite_first_level(plan.levels, sampling.levels) : plan.levels,
      sampling.levels, sampling.prediction == Prediction::kFlow);
  const heddle_sampler_run& run = plan.told->get();
  if (sampler.attempt == nullptr) plan.steps = plan_run(sampler, run);
  plan.end_scale = with_user_errors(
      [&] { return inverse_noise_scaling(sampling.prediction, final_sigma(sampler, run)); });
  return plan;
}

double level_behind(const Sigmas& levels, double sigma) {
  constexpr double kSameLevel = 1e-6;  // parts of it, as rounding takes two that are the same
  double next = 0;
  for (const double level : levels)
    if (level < sigma * (1 - kSameLevel)) next = std::max(next, level);
  return next;
}

}  // namespace heddle::samplers
