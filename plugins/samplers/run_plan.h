// A run of a sampler as numbers: the levels it really visits and the model evaluations of each
// step. What execute() follows and infer() counts. Pure; any thread.
#pragma once

#include <memory>

#include "model_sampling.h"
#include "noise_schedule.h"
#include "sampler_kind.h"

namespace heddle::samplers {

struct RunPlan {
  Sigmas levels;  // as they were asked for, without repetitions
  // What the sampler was told, for its attempts. Borrows the model's levels.
  std::unique_ptr<ToldRun> told;
  SamplerPlan steps;       // none when the sampler makes attempts
  double end_scale = 1.0;  // of the last point

  // Of the model. A guess when the sampler makes attempts.
  std::size_t evaluations() const;
  // Of the evaluations; those of attempts are not known before, and take the first level.
  std::vector<double> sigmas() const;
};

// The highest of its levels.
double highest_of(const RunPlan& run);

// How many of a kind of term have to be kept for a run.
std::size_t kept_of(const SamplerPlan& steps, std::int32_t of);

// REQUIRES: sigmas is not empty. Throws where the sampler cannot do these levels.
RunPlan plan_levels(const heddle_sampler_desc& sampler, const SamplerChoice& choice,
                    const Sigmas& sigmas, const ModelSampling& sampling);

// The level that a step from `sigma` goes to: the next of the run's, behind the last one 0.
double level_behind(const Sigmas& levels, double sigma);

}  // namespace heddle::samplers
