// plugins/encoders/deep_vision_model.h - the vision tower of Qwen3-VL and Qwen3.5: what a language
// model sees of a picture (language_model.h, inputs "pictures" and "deep.0", "deep.1" ...).
//
// Input    picture   (1|2, H, W, 3) f32 loop-invariant  normalised, H and W multiples of 32; one,
// or
//                                                       two of a video that follow each other
// Outputs  tokens    (1, M, D) f32      M = H/32 x W/32, row after row; D the language model's
//          deep.<i>  (1, M, D) f32      what is added behind the language model's ith layer
//
// Source of the architecture: transformers' Qwen3VLVisionModel: patches of 16 pixels, a learned
// table of places, layer norms, rotary embeddings of row and column, attention of all patches to
// all, MLPs, and mergers of 2 x 2 patches: one behind the last layer and one behind each of a few
// before it ("deepstack"), of which Qwen3.5 has none. Sizes are read off the tensors; the config
// may give "num_heads" and "deepstack_visual_indexes", also in its "vision_config". Settings:
// "width" D, "unit" the pixels of a token's side, "deep" the number of such layers, "pixel_mean"
// and "pixel_deviation" what a picture is normalised with. Stateless, any thread.
#pragma once

#include "deep_vision_blocks.h"

#include <heddle/model.hpp>

namespace heddle::encoders {

struct DeepVisionModel {
  static constexpr Family family{"qwen3_vision", "vision_encoder", 1,
                                 "the vision tower of Qwen3-VL and Qwen3.5"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::encoders
