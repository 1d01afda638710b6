// The small picture that Stable Diffusion's x4 upscaler draws larger, as its input "concat": of
// pixels, from -1 to 1, mixed with noise up to a level that the model is told as "level". As
// ComfyUI's ImageConcatWithNoiseAugmentation does: the noise is PyTorch's on the CPU, of the run's
// seed less 10. One call's thread.
#pragma once

#include <heddle/model.hpp>

#include "concat_input.h"

namespace heddle::samplers {

// What an entry of a CONDITIONING tells of it: a tensor (B, C, h, w), and a share of `levels`.
inline constexpr const char* kConcatPicture = "concat_image";
inline constexpr const char* kPictureNoise = "noise_augmentation";

// From 0 to `levels`. Throws where the entry asks for a share below 0 or above 1.
std::int64_t noise_level_of(const Value& entry, std::int64_t levels);
// (items, C, h, w) f32 on the device of the call, resized to the point from the middle; zeros for
// an entry without a picture. REQUIRES: layout.levels is above 0.
Tensor noised_picture_of(Context& ctx, const Value& entry, const ConcatLayout& layout,
                         const ConcatPlace& place);

}  // namespace heddle::samplers
