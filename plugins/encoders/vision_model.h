// plugins/encoders/vision_model.h - the vision tower of Qwen2.5-VL: what a language model sees of a
// picture (language_model.h, input "pictures").
//
// Input    picture   (1, H, W, 3) f32   loop-invariant  normalised, H and W multiples of 28
// Output   tokens    (1, M, D) f32      M = H/28 x W/28, row after row; D the language model's
//
// Source of the architecture: transformers' Qwen2_5_VisionTransformerPretrainedModel: patches of 14
// pixels, RMS norms, rotary embeddings of row and column, attention within windows of 112 pixels
// but in every eighth layer, gated MLPs, and a merger of 2 x 2 patches. Sizes are read off the
// tensors; the config may give "num_heads", "fullatt_block_indexes" and "window_size", also in its
// "vision_config". Settings: "width" D, "unit" the pixels of a token's side. Stateless, any thread.
#pragma once

#include "vision_blocks.h"

#include <heddle/model.hpp>

namespace heddle::encoders {

struct VisionModel {
  static constexpr Family family{"qwen2.5_vision", "vision_encoder", 1,
                                 "the vision tower of Qwen2.5-VL"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::encoders
