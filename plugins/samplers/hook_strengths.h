// Which weights of its model the conditionings of a run ask for, evaluation by evaluation, as
// ComfyUI goes through the keyframes of hooks. One run's thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "noise_levels.h"
#include "plugins/blocks/weight_hooks.h"

namespace heddle::samplers {

class HookStrengths {
 public:
  // `highest`: the highest level of the run. Borrows the model's levels.
  HookStrengths(const NoiseLevels& levels, double highest) : levels_(levels), highest_(highest) {}

  // A number for the weights under these hooks at this level: the same for the same changes, 0 for
  // the model's own. To be asked in the order of the evaluations, by all entries that count.
  std::size_t weights_at(const std::vector<blocks::WeightHook>& hooks, double sigma);
  // What the keyframes of a hook say there.
  double strength_at(const blocks::WeightHook& hook, double sigma);
  // Model number `number` of the run with these weights. Made once; throws what
  // blocks::hooked_model() throws.
  const Value& model(std::size_t number, const Value& own, std::size_t weights);

 private:
  using Keyframes = std::vector<blocks::HookKeyframe>;
  // Where hooks of one clock are in their keyframes.
  struct Clock {
    std::size_t keyframe = 0;
    std::int64_t evaluations = 0;  // of this keyframe
    std::optional<float> level;    // the last one asked for
  };
  struct Changed {
    blocks::WeightHook hook;
    double strength = 0.0;
  };
  void advance(Clock& clock, const Keyframes& keyframes, float level) const;
  float level_of(const blocks::HookKeyframe& keyframe) const;
  std::int64_t guaranteed(const blocks::HookKeyframe& keyframe) const;

  const NoiseLevels& levels_;
  const double highest_;
  std::map<std::string, Clock> clocks_;
  std::vector<std::vector<Changed>> weights_;                    // from number 1
  std::map<std::pair<std::size_t, std::size_t>, Value> models_;  // by number and weights
};

}  // namespace heddle::samplers
