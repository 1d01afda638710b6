// What Wan 2.2 Animate reads beside the point: a latent of poses (its input "pose"), in the model's
// units, and pictures of a face ("face"); and Animate 2: poses with a text ("pose_context") and
// what CLIP saw ("pose_vision") of their own. As ComfyUI gives them. One call's thread.
#pragma once

#include "concat_input.h"

namespace heddle::samplers {

// Of a conditioning's entry: (1|B, C, T, h, w), in the autoencoder's units, and (1|B, 3, S, E, E),
// from -1 to 1.
inline constexpr const char* kPoseLatent = "pose_video_latent";
inline constexpr const char* kFacePixels = "face_video_pixels";
// Of Animate 2, as cross_attn and clip_vision_output.
inline constexpr const char* kPoseText = "pose_cross_attn";
inline constexpr const char* kPoseSeen = "pose_clip_vision_output";

// Throws where an entry has poses for Animate 2, and the model is not told to follow them.
void refuse_poses(const Value& entry, const Value& model);

// (1 or items, C, T, height, width) f32 on the device of the call. Throws where it has other
// channels, or another size than the point, and for an area of a part of the frames.
Tensor pose_of(Context& ctx, const Value& entry, const LatentFormat& format,
               const ConcatPlace& place);
// settings: face_side, E. (1 or items, 3, S, E, E). Throws where they have another size.
Tensor face_of(Context& ctx, const Value& entry, const Value& settings, const ConcatPlace& place);

// None where a run throws.
std::optional<Shape> pose_shape(const blocks::EntryShapes& entry, const Value& settings,
                                const ConcatPlace& place);
std::optional<Shape> face_shape(const blocks::EntryShapes& entry, const Value& settings,
                                const ConcatPlace& place);

}  // namespace heddle::samplers
