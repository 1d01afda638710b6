// What an encoder heard of a sound (plugins/encoders/audio_encoder_nodes.h), as Wan 2.2 S2V reads
// it: its states, 50 a second, brought to 30 a second, of which each frame of a video of 16 a
// second takes the nearest one. Formulas: ComfyUI's WanSoundImageToVideo. One call's thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

// The moments of a video that goes on in parts: this one has `count`, from `first` on.
struct MomentRange {
  std::int64_t first, count;
};

// Whether a sound of so many states has a moment in the part. As in ComfyUI behind its end there is
// silence up to the end of a part.
bool is_heard(std::int64_t states, const MomentRange& part);

// heard: an AUDIO_ENCODER_OUTPUT; encoded_audio_all_layers (S, 1, T, K) -> (1, S, K, count) f32 in
// host memory, of zeros behind the sound's end. none: zeros, however it sounds. Throws where it is
// no such record, or of several sounds, or too short.
Tensor heard_moments(Context& ctx, const Value& heard, const MomentRange& part, bool none);

// The shape of a heard sound's states, which infer() knows; empty: heard_moments() throws.
Shape moments_shape(const Shape& states, const MomentRange& part);

}  // namespace heddle::vae
