// What SCAIL 2 reads beside the point: reference pictures (its input "reference"), a latent of
// poses of half the sides ("half_pose"), coloured masks of both ("reference_masks" and
// "pose_masks"), and whether the references lie apart ("apart"). As ComfyUI gives them. One call's
// thread.
#pragma once

#include <string_view>

#include "concat_input.h"

namespace heddle::samplers {

// Of a conditioning's entry: (1|B, T, K, h, w) of the poses and (1|B, R + frames, K, h, w) of R
// references, then the video; a bool, false where the references lie apart. The latent of poses is
// that of animate_input.h.
inline constexpr const char *kPoseMasks = "driving_mask_28ch", *kReferenceMasks = "ref_mask_28ch",
                            *kReferencesInLine = "ref_mask_flag";
// The model's inputs, and its setting K.
inline constexpr std::string_view kHalfPoseInput = "half_pose", kPoseMasksInput = "pose_masks",
                                  kReferenceMasksInput = "reference_masks", kApartInput = "apart";
inline constexpr const char* kMaskChannels = "mask_channels";

bool lies_apart(const Value& entry);

// (1 or items, C, T, h, w) f32 in the model's units, of any size.
Tensor half_pose_of(Context& ctx, const Value& entry, const Value& settings,
                    const ConcatPlace& place);
// field: one of the two above. (1 or items, T, K, h, w) f32.
Tensor coloured_masks_of(Context& ctx, const Value& entry, const char* field, const Value& settings,
                         const ConcatPlace& place);
// Of models whose settings say reference_stack: all of the entry's reference_latents, the first one
// last: (1 or items, C, R, height, width) f32 in the model's units.
Tensor stacked_references_of(Context& ctx, const Value& entry, const Value& settings,
                             const ConcatPlace& place);
// All are on the device of the call, and throw where what they read has other channels, and for an
// area of a part of the video; masks and pictures also where their size is not the point's.

// None where a run throws.
std::optional<Shape> half_pose_shape(const blocks::EntryShapes& entry, const Value& settings,
                                     const ConcatPlace& place);
std::optional<Shape> coloured_masks_shape(const heddle_tensor_info& told, const Value& settings,
                                          const ConcatPlace& place);
std::optional<Shape> stacked_references_shape(const blocks::EntryShapes& entry,
                                              const Value& settings, const ConcatPlace& place);

}  // namespace heddle::samplers
