// What a model patch of MiniMax H3 reads (plugins/denoisers/minimax_patch.h): the latent of a video
// that is followed, and behind it, where a mask is given, that of what stays and of a video whose
// marked parts are drawn anew. As ComfyUI makes it: frames are taken from the beginning, the last
// one again where they end, and resized from the middle along straight lines. Frames are made clip
// by clip, so that host memory and the device hold a few of them. One call's thread.
#pragma once

#include <memory_resource>

#include <heddle/node.hpp>

#include "model_patches.h"

namespace heddle::samplers {

// Whether a patch reads videos.
bool reads_video(const Value& patch);

// Throws where the autoencoder is another one, or a mask has no room in the patch's hints.
void check_video_hint(const AppliedPatch& patch);

// For cells (frames, height, width) of the latent. None where something is not known.
std::optional<PatchShapes> video_hint_shapes(const AppliedPatch& patch, const Shape& cells);

// (1, C', F, h, w) f32 on the device of the call, for a point (B, C, F, h, w). Calls the
// autoencoder's encoder.
Tensor video_hint(Context& ctx, const AppliedPatch& patch, const Shape& point,
                  std::pmr::memory_resource& memory);

}  // namespace heddle::samplers
