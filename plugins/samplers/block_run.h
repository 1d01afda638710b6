// Runs in which a video is drawn block by block of its frames, as ComfyUI's SamplerARVideo has it:
// each block goes through all levels, between which what the model sees is noised again, and looks
// at the frames before it, which the model has seen without noise once more (frame_cache.h). The
// model is called anew for every block.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "attention_pairs.h"
#include "run_plan.h"
#include "sample.h"
#include "sample_shapes.h"

namespace heddle::samplers {

// Frames [begin, begin + count) of a video. is_given: they are not drawn.
struct FrameBlock {
  std::int64_t begin = 0, count = 0;
  bool is_given = false;
};
// Of so many frames, of which the first `given` are. Pure.
std::vector<FrameBlock> frame_blocks(std::int64_t frames, std::int64_t given, std::int64_t each);

// The setting of a model, (1, C, n, h, w) f32 in the autoencoder's units, with a video's first
// frames (ARVideoI2V).
inline constexpr const char* kFirstFrames = "first_frames";

// REQUIRES: the job's sampler has frames_per_block, and there are levels.
Sampled sample_in_blocks(Context& ctx, const SampleJob& job);

// By shapes: the jobs of the blocks that the model is asked of, in their order; none where
// sample_in_blocks() would throw.
std::vector<JobShapes> block_jobs(const JobShapes& job);
// What a run of such a job asks the model besides, and what it reads besides; nothing for others.
void add_clean_look(const JobShapes& job, RunPlan& run);
void add_kept_frames(const JobShapes& job, const Value& model, Constants& constants);

}  // namespace heddle::samplers
