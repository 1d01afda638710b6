// Samplers by name, wherever they come from: the ones of this plugin, offered as
// heddle.field.samplers/0 like those of any other, and the planning of a whole run from such a
// desc. Descs are static data of the plugins; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <heddle/diffusion/samplers.h>
#include <heddle/plugin.hpp>

#include "noise_schedule.h"

namespace heddle::samplers {

struct Samplers {
  static constexpr std::string_view kind = HEDDLE_SAMPLERS;
  static const heddle_list* list();
};

// Throws not_found, naming what is there.
const heddle_sampler_desc& sampler_named(const std::string& name);

// What a workflow chooses: a sampler and its two numbers.
struct SamplerChoice {
  std::string name = "euler";
  double eta = 1.0;
  double noise_factor = 1.0;
};

// All evaluations of a run, by step.
using SamplerPlan = std::vector<std::vector<heddle_sampler_evaluation>>;

// The run that a sampler is told about. `sigmas` is borrowed.
heddle_sampler_run sampler_run(const SamplerChoice& choice, const Sigmas& sigmas, bool flow);
SamplerPlan plan_run(const heddle_sampler_desc& sampler, const heddle_sampler_run& run);
double final_sigma(const heddle_sampler_desc& sampler, const heddle_sampler_run& run);

}  // namespace heddle::samplers
