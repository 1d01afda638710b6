// plugins/denoisers/wan_causal.h - a causal Wan 2.1 among the layers of Wan's graph: what they are
// given of the frames before a block, and what they hand out of the block itself. Used while a
// graph is built.
#pragma once

#include <utility>

#include "wan_causal_blocks.h"
#include "wan_sizes.h"

namespace heddle::denoisers {

class WanCausal {
 public:
  // All outlive it. x: the latent.
  WanCausal(const WanSizes& sizes, Blocks& graph, const Source& x);

  // cos, sin
  const std::pair<Source, Source>& rope() const { return rope_; }
  // The input and the output of layer `number`, a WanCausalLayer.
  void add_to(Block& block, int number) const;

 private:
  Blocks& graph_;
  std::pair<Source, Source> rope_;
};

// Whether the config, or the one in the file's metadata ("config": "transformer"), says
// `causal_ar`, as files for ComfyUI do: by its tensors such a model is any Wan 2.1. Throws where a
// model says so that reads something beside the text.
bool is_causal_wan(const Checkpoint& file, const Value& config, const WanSizes& sizes);

// The settings of such a model.
void add_causal_settings(const WanSizes& s, Blocks& graph);

}  // namespace heddle::denoisers
