// EasyCache: where little has changed, the model's outputs are guessed from its last ones - what it
// added to its input then is added to the input now - and it is not called. One call's thread.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <heddle/host_memory.hpp>

#include "step_cache.h"
#include "stretches.h"

namespace heddle::samplers {

// What goes into the model for a set, and the set's text, whose shapes say what ComfyUI computes
// together.
struct SetInput {
  ModelSet set;
  Tensor x;
  Value constants;
};

class OutputCache {
 public:
  explicit OutputCache(const StepCacheNumbers& numbers) : meter_(numbers, false) {}

  // The outputs of all sets, or none where the model has to be called.
  std::vector<Tensor> guess(Context& ctx, double sigma, const std::vector<SetInput>& inputs);
  void made(Context& ctx, double sigma, const std::vector<SetInput>& inputs,
            const std::vector<Tensor>& outputs);
  void archive(StateArchive& state);

 private:
  const Tensor* added_for(const ModelSet& set) const;

  ChangeMeter meter_;
  std::vector<std::pair<ModelSet, Tensor>> added_;  // output - input of the last call
};

}  // namespace heddle::samplers
