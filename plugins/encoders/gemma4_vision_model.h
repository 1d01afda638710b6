// plugins/encoders/gemma4_vision_model.h - what Gemma 4 sees of a picture (language_model.h, input
// "pictures"): the vision tower of E2B, E4B and 31B, and the tokens of pixels of 12B, which has no
// tower.
//
// Input    picture   (1, H, W, 3) f32   loop-invariant  normalised, H and W multiples of 48
// Output   tokens    (1, M, D) f32      M = H/48 x W/48, row after row; D the language model's
//
// Source of the architecture: transformers' Gemma4VisionModel and Gemma4MultimodalEmbedder: patches
// of 16 pixels, learned tables of columns and rows, RMS norms before and behind attention and gated
// MLP, rotary embeddings of column and row, attention of all patches to all, limits around matrices
// ("input_min" and the like, read as the model is built), means of 3 x 3 patches, a norm and a
// matrix; and Gemma4UnifiedVisionEmbedder. Sizes are read off the tensors; the config may give
// "pooling_kernel_size" and "rms_norm_eps", also in its "vision_config". Names are transformers' or
// those of the files for ComfyUI. Settings: "width" D, "unit" the pixels of a token's side,
// "picture_tokens" and "frame_tokens", how many a picture, and one of a video, has at most,
// "token", the id that stands in the place of each, "counts_on", that they are counted as words
// are, "sees_bytes" (pictures.h), "pixel_mean" and "pixel_deviation". Stateless, any thread.
#pragma once

#include "gemma4_vision_blocks.h"

#include <heddle/model.hpp>

namespace heddle::encoders {

struct Gemma4Vision {
  static constexpr Family family{"gemma4_vision", "vision_encoder", 1,
                                 "what Gemma 4 sees pictures with"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::encoders
