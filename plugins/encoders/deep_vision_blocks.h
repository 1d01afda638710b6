// plugins/encoders/deep_vision_blocks.h - the blocks of Qwen3-VL's vision tower
// (deep_vision_model.h) besides those that it shares with Qwen2.5-VL's (vision_blocks.h). Shapes as
// there: a picture of h x w patches, S = h w of them, M = S / merge^2 units, D width, H heads of d.
// Patches stand unit after unit, which are windows of one unit (vision_windows.h). Hidden states
// are f32 between blocks; only operands of matrix products are in the compute type. Blocks are pure
// and have no instance; any thread.
#pragma once

#include "vision_blocks.h"

namespace heddle::encoders {

// picture (1|2, H, W, 3), normalised, one or a pair of a video's -> hidden (1, S, D): patches, plus
// what a square table of n x n places has at theirs. The corners of the picture are those of the
// table, and between its places it is interpolated linearly.
struct DeepVisionEmbed {
  static constexpr Info info{"deep_vision.embed", 1,  "Deep vision tower, patches",
                             "blocks/language",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> picture{"picture"};
  static constexpr Input<std::int64_t> patch = vision_ports::patch();
  static constexpr Input<std::int64_t> merge = vision_ports::merge();
  static constexpr Input<std::int64_t> side = vision_ports::side();
  static constexpr Weight first{"first.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight second{"second.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"bias"};
  static constexpr Weight places{"places", HEDDLE_USE_TABLE};  // (n^2, D), row after row
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(picture, patch, merge, side, first, second, bias, places, out);
  static void execute(Context& ctx);
};

// hidden (1, S, D) -> the same. All patches see all.
struct DeepVisionLayer {
  static constexpr Info info{"deep_vision.layer", 1,  "Deep vision tower, layer",
                             "blocks/language",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> cos{"cos"};
  static constexpr Input<Tensor> sin{"sin"};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 16}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight norm1_bias{"norm1.bias"};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight qkv_bias{"qkv.bias"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight norm2_bias{"norm2.bias"};
  static constexpr Weight up{"mlp.up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"mlp.up.bias"};
  static constexpr Weight down{"mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"mlp.down.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, cos, sin, heads, eps, norm1, norm1_bias, qkv, qkv_bias, proj, proj_bias,
                    norm2, norm2_bias, up, up_bias, down, down_bias, out);
  static void execute(Context& ctx);
};

// hidden (1, S, D) -> tokens (1, M, D'), row after row: each unit's patches side by side, through
// two layers to the language model's width. The norm is over a patch, or over a whole unit.
struct DeepVisionMerge {
  static constexpr Info info{"deep_vision.merge", 1,  "Deep vision tower, merger",
                             "blocks/language",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> merge = vision_ports::merge();
  static constexpr Input<bool> norms_units{"norms_units", Widget{.number = 0}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight up{"up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"up.bias"};
  static constexpr Weight down{"down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"down.bias"};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports = heddle::ports(hidden, merge, norms_units, eps, norm, norm_bias, up,
                                              up_bias, down, down_bias, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::encoders
