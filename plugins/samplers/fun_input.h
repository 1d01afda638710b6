// What Wan Fun reads beside the point: the rays of a camera (its input "camera"), and a picture
// that is a frame before the video's ("reference"). As ComfyUI gives them; the picture in the
// model's units. One call's thread.
#pragma once

#include "concat_input.h"

namespace heddle::samplers {

// Of a conditioning's entry: (1|B, K, T, H, W), numbers of each pixel of T frames of the latent.
inline constexpr const char* kCameraConditions = "camera_conditions";

// settings: camera_numbers, of a cell's pixels together. (1 or items, camera_numbers, frames,
// height, width) f32 on the device of the call: of each of the K the rows of a cell, pixel by
// pixel. Throws where the camera has another size or length than the point, or other numbers.
Tensor camera_of(Context& ctx, const Value& entry, const Value& settings, const ConcatPlace& place);
// None where a run throws.
std::optional<Shape> camera_shape(const blocks::EntryShapes& entry, const Value& settings,
                                  const ConcatPlace& place);

// Of models whose settings say reference_frame: the last of the entry's reference_latents, of a
// video its first frame, or all where they say reference_video: (1 or items, channels, frames,
// height, width) f32, on the device of the call. Throws where it has other channels, or another
// size than the point.
Tensor reference_frame_of(Context& ctx, const Value& entry, const Value& settings,
                          const ConcatPlace& place);
std::optional<Shape> reference_frame_shape(const blocks::EntryShapes& entry, const Value& settings,
                                           const ConcatPlace& place);

}  // namespace heddle::samplers
