// plugins/blocks/clip_stop.h - a CLIP (heddle/diffusion/values.h) that is read before its last
// layer, as CLIPSetLastLayer and the configs of checkpoints ask for. One call's thread.
#pragma once

#include <cstdint>

#include <heddle/model.hpp>

namespace heddle::blocks {

// stop: -1 is the last layer, -2 the one before it, and so on, as ComfyUI counts them. Reads no
// weights.
Value stopped_clip(Context& ctx, const Value& clip, std::int64_t stop);

}  // namespace heddle::blocks
