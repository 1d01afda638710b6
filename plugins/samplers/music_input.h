// What WanDancer reads beside the point: what is measured of a music (its input "music"), how much
// that counts ("music_strength"), what CLIP saw of the picture that is kept to
// ("reference_vision"), and where frames lie that are further apart than those of a film
// ("frame_places"). As ComfyUI gives them. One call's thread.
#pragma once

#include <string_view>

#include "concat_input.h"

namespace heddle::samplers {

// Of a conditioning's entry: a number, a CLIP_VISION_OUTPUT, frames a second. The music is the
// field of sound_video_input.h, here (1|B, S, N), N numbers for each of S moments.
inline constexpr const char *kMusicScale = "audio_inject_scale",
                            *kKeptSeen = "clip_vision_output_ref", *kFrameRate = "fps";
inline constexpr std::string_view kMusicInput = "music", kMusicStrength = "music_strength",
                                  kKeptVision = "reference_vision", kFramePlaces = "frame_places";
// Setting of the model: N.
inline constexpr const char* kMusicNumbers = "music_numbers";

// Whether its frames lie apart: there are other than 30 a second.
bool frames_lie_apart(const Value& entry);

// (1 or items, S, N) f32, on the device of the call. Throws where it is no such music, and for an
// area of a part of the frames.
Tensor music_of(Context& ctx, const Value& entry, const Value& settings, const ConcatPlace& place);
// (1) and (frames) f32, on the host. The places count frames of 30 a second from 0; the last frame
// lies at the end of its time. Source: ComfyUI's WanDancerModel.rope_encode().
Tensor music_strength_of(Context& ctx, const Value& entry);
Tensor frame_places_of(Context& ctx, const Value& entry, const ConcatPlace& place);

// None where a run throws.
std::optional<Shape> music_shape(const blocks::EntryShapes& entry, const Value& settings,
                                 const ConcatPlace& place);

}  // namespace heddle::samplers
