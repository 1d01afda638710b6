// Runs in which the picture grows between steps: what the model sees in a step is resized, and
// noised again for the next one, as ComfyUI's SamplerLCMUpscale has it. The model is called anew
// for every size.
#pragma once

#include <cstddef>
#include <vector>

#include "plugins/blocks/resample.h"
#include "sample.h"

namespace heddle::samplers {

// The grid after each of the first steps of a run over so many levels; behind those it stays. Pure.
std::vector<blocks::GridSize> growing_sizes(const Growth& growth, const blocks::GridSize& from,
                                            std::size_t level_count);

// REQUIRES: the job's sampler has a growth, and there are levels.
Sampled sample_growing(Context& ctx, const SampleJob& job);

// The steps of one size: of the run, from the first to behind the last, and of which shape they
// are. Pure.
struct SameSize {
  std::size_t begin = 0, end = 0;
  Shape shape;
};
struct GrowingShapes {
  std::vector<SameSize> steps;
  Shape result;
};
GrowingShapes growing_shapes(const Growth& growth, const Shape& latent, std::size_t level_count);

}  // namespace heddle::samplers
