// What an encoder heard of one or two speakers (plugins/encoders/audio_encoder_nodes.h), as
// InfiniteTalk reads it: its states, but for those before the first layer, 50 a second, brought to
// 25, one for each frame. Speakers follow each other: while one is heard the other is silent.
// Formulas: ComfyUI's WanInfiniteTalkToVideo. One call's thread.
#pragma once

#include <vector>

#include <heddle/node.hpp>

#include "plugins/vae/heard_moments.h"

namespace heddle::vae {

// Moments on both sides of a frame that are heard with it.
inline constexpr std::int64_t kMomentsBeside = 2;

// Of the parts of one sound, whose moments are frames: (P, count + 4, N) f32 in host memory. Before
// the first moment there is the first, behind the last one the last; where the part ends behind the
// sound, the sound's first moment fills it up. numbers: N, of a moment. Throws where something is
// no record of states, or of other numbers, or too short.
Tensor talk_moments(Context& ctx, const std::vector<Value>& heard, const MomentRange& part,
                    std::int64_t numbers);

// By shapes of states.
Shape talk_shape(std::size_t speakers, const MomentRange& part, std::int64_t numbers);

}  // namespace heddle::vae
