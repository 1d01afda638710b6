// What Wan 2.2 S2V and HuMo read beside the point: states of an encoder that heard a sound (its
// input "heard"), the frames of the latent before the video ("motion") and a video that is followed
// ("followed"), both in the model's units. As ComfyUI gives them. One call's thread.
#pragma once

#include <string_view>

#include "concat_input.h"

namespace heddle::samplers {

// Of a conditioning's entry: (1|B, S, K, E), S states of K numbers for each of E moments, four in a
// frame of the latent, of HuMo (1|B, frames, W, S, K), W moments for each frame (the setting
// heard_window); (1|B, C, T, h, w) and (1|B, C, frames, h, w), in the autoencoder's units.
inline constexpr const char *kHeardSound = "audio_embed", *kEarlierLatent = "reference_motion",
                            *kFollowedLatent = "control_video";
inline constexpr std::string_view kHeardInput = "heard", kEarlierInput = "motion",
                                  kFollowedInput = "followed";
// Settings of the model: S and K.
inline constexpr const char *kHeardStates = "heard_states", *kHeardWidth = "heard_width";

// (1 or items, S, K, E) f32, or as HuMo reads it, (1 or items, C, T, height, width) f32 and (1 or
// items, C, frames, height, width) f32, on the device of the call. All throw where they are of
// another size than the model reads or the point has, and for an area of a part of the frames.
Tensor heard_of(Context& ctx, const Value& entry, const Value& settings, const ConcatPlace& place);
Tensor earlier_frames_of(Context& ctx, const Value& entry, const LatentFormat& format,
                         const ConcatPlace& place);
Tensor followed_of(Context& ctx, const Value& entry, const LatentFormat& format,
                   const ConcatPlace& place);

// None where a run throws.
std::optional<Shape> heard_shape(const blocks::EntryShapes& entry, const Value& settings,
                                 const ConcatPlace& place);
std::optional<Shape> earlier_frames_shape(const blocks::EntryShapes& entry, const Value& settings,
                                          const ConcatPlace& place);
std::optional<Shape> followed_shape(const blocks::EntryShapes& entry, const Value& settings,
                                    const ConcatPlace& place);

}  // namespace heddle::samplers
