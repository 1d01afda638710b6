// A run of a sampler as numbers: the levels it really visits and the model evaluations of each
// step. What execute() follows and infer() counts. Pure; any thread.
#pragma once

#include "model_sampling.h"
#include "noise_schedule.h"
#include "sampler_kind.h"

namespace heddle::samplers {

struct RunPlan {
  Sigmas levels;  // as they were asked for, without repetitions
  SamplerPlan steps;
  double end_scale = 1.0;  // of the last point

  std::size_t evaluations() const {
    std::size_t count = 0;
    for (const auto& step : steps) count += step.size();
    return count;
  }
};

// REQUIRES: sigmas is not empty. Throws where the sampler cannot do these levels.
RunPlan plan_levels(const heddle_sampler_desc& sampler, const SamplerChoice& choice,
                    const Sigmas& sigmas, const ModelSampling& sampling);

}  // namespace heddle::samplers
