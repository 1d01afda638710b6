// What each frame of a video, or of its sound, has of the noise level, by the latent's noise mask,
// for models that are told it. One call's thread.
#pragma once

#include <string>

#include "conditioning.h"

namespace heddle::samplers {

// The input with what each frame of the latent has of the level, in as many equal parts of the
// tokens as the frames are divided into (GuideTokens), and the most of them.
inline constexpr const char* kFrameMost = "frame_most";
// Those of the sound, which begins with the frames of another one where the entry has such
// (kVoice), of which nothing is drawn.
inline constexpr const char* kAudioNoise = "audio_noise";
inline constexpr const char* kAudioMost = "audio_most";

// The tokens of another sound, (items, R, numbers), which stand before those of the video's sound
// in models with an input "voice", and the field of an entry, a record of them, "tokens".
inline constexpr const char* kVoice = "voice";
inline constexpr const char* kVoiceField = "ref_audio";

// The kind of such an input; none: it is another one.
std::optional<ConditioningInput::Kind> noise_input_kind(const std::string& name);

// Tensors of such an input. frames_before: of another sound. is_mean: by the mean of what the mask
// says of a frame; else it has to be even.
Tensor frame_noise_of(Context& ctx, const std::string& name, const Value& entry,
                      const ConcatPlace& place, bool is_mean);
// How many numbers it has. entry: what is known of it before a run.
std::int64_t frame_noise_count(const std::string& name, const Value& entry,
                               const ConcatPlace& place, std::int64_t frames_before);

}  // namespace heddle::samplers
