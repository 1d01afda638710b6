// What a model patch reads: the latent of a picture, and where it can draw a part anew a mask and
// the latent of what is drawn anew, channel for channel. As ComfyUI makes it: pictures are resized
// to the latent's pixels from the middle, by areas. Of patches that read videos: video_hint.h. One
// call's thread.
#pragma once

#include <memory_resource>

#include <heddle/node.hpp>

#include "model_patches.h"

namespace heddle::samplers {

// Throws where the patch lacks a picture, an autoencoder or channels that are known.
void check_hint_parts(const AppliedPatch& patch);

// (1|B, C', h, w) f32 on the device of the call, for a point (B, C, h, w). `denoiser`: in whose
// units latents are. Calls the autoencoder's encoder.
Tensor patch_hint(Context& ctx, const AppliedPatch& patch, const Value& denoiser,
                  const Shape& point, std::pmr::memory_resource& memory);

}  // namespace heddle::samplers
