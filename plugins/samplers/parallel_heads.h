// Models distilled for parallel decoding (setting parallel_heads, n; FastH3 OmniRef): of n output
// heads, of which each is for a part of the way from noise to the clean sample, a step takes those
// that it goes past, each by how far its part moves the sample. The first head is whole, the others
// are what they differ from it by. Source: ComfyUI's MiniMax H3, as diffusers has none. Parts are
// equal on the clock u of sound_levels.h, counted from the end; the levels of the video tell which
// are gone past, its own shift and the sound's by how far. Pure, but for what makes tensors.
#pragma once

#include <span>
#include <vector>

#include <heddle/model.hpp>

#include "told_constants.h"

namespace heddle::samplers {

// Inputs of such a model, (N, n) f32 for N evaluations: what its heads count.
inline constexpr const char* kVideoHeads = "video_heads";
inline constexpr const char* kSoundHeads = "sound_heads";

// The heads that an evaluation at `sigma` takes, [begin, end): up to the level that is behind the
// nearest one of the run's. shift: of these levels.
struct HeadRange {
  std::int64_t begin = 0, end = 1;
};
HeadRange heads_between(std::int64_t heads, std::span<const float> levels, double sigma,
                        double shift);
// n weights; shift: of what the heads make.
std::vector<float> head_weights(std::int64_t heads, const HeadRange& range, double shift);

// Added to the schedule of evaluations at `sigmas`, of a run over `levels`; of any other model
// nothing.
void add_head_weights(Context& ctx, const Value& model, std::span<const float> levels,
                      std::span<const double> sigmas, Record& schedule);
// The same by shapes, for so many evaluations.
void tell_head_weights(Constants& told, const Value& model, std::int64_t steps);

}  // namespace heddle::samplers
