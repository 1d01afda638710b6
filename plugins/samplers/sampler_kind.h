// Samplers by name, wherever they come from: the ones of this plugin, offered as
// heddle.field.samplers/0 like those of any other, and the planning of a whole run from such a
// desc. Descs are static data of the plugins; any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/diffusion/samplers.h>
#include <heddle/plugin.hpp>

#include "noise_levels.h"
#include "noise_schedule.h"
#include "samplers.h"

namespace heddle::samplers {

struct Samplers {
  static constexpr std::string_view kind = HEDDLE_SAMPLERS;
  static const heddle_list* list();
};

// Throws not_found, naming what is there.
const heddle_sampler_desc& sampler_named(const std::string& name);

// Of a run in which the picture grows (growing_run.h).
struct Growth {
  double scale = 1.0;       // of the sides, in the end
  std::int64_t steps = -1;  // after how many of the first ones it grows; -1: half of them
  std::string method;       // of kLatentScaleMethods
};

// Throws invalid_argument for an option that the sampler says it does not know, or that is out of
// its range.
void check_options(const heddle_sampler_desc& sampler,
                   const std::vector<std::pair<std::string, double>>& options);

// What a workflow chooses: a sampler and its numbers.
struct SamplerChoice {
  std::string name = "euler";
  double eta = 1.0;
  double noise_factor = 1.0;
  std::vector<std::pair<std::string, double>> options = {};
  std::optional<Growth> growth = {};  // in the place of the sampler's own steps
  std::int64_t frames_per_block =
      0;  // likewise: of a video drawn in blocks (block_run.h); 0: whole
};

// A run as a sampler is told about it: what heddle_sampler_run points to.
class ToldRun {
 public:
  // Borrows the levels.
  ToldRun(const SamplerChoice& choice, Sigmas sigmas, const NoiseLevels& levels, bool flow);
  ToldRun(const ToldRun&) = delete;
  const heddle_sampler_run& get() const { return run_; }

 private:
  std::vector<std::pair<std::string, double>> options_;
  std::vector<heddle_sampler_option> listed_;
  Sigmas sigmas_;
  heddle_sampler_run run_;
};

// All evaluations of a run, by step.
using SamplerPlan = std::vector<std::vector<Evaluation>>;

SamplerPlan plan_run(const heddle_sampler_desc& sampler, const heddle_sampler_run& run);
// The next attempt of a sampler that makes such; `state` is zeros and an error of -1 at first.
std::vector<Evaluation> next_attempt(const heddle_sampler_desc& sampler,
                                     const heddle_sampler_run& run, heddle_sampler_attempt& state);
double final_sigma(const heddle_sampler_desc& sampler, const heddle_sampler_run& run);

}  // namespace heddle::samplers
