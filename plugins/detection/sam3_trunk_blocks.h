// plugins/detection/sam3_trunk_blocks.h - the block types of SAM 3's image encoder: a vision
// transformer whose layers attend within windows, but for a few, and whose queries and keys turn
// with columns and rows (Bolya et al. 2025, Perception Encoder; Li et al. 2022, ViTDet), and the
// pyramid of grids behind it. Grids are (B, H, W, C). Blocks are pure and have no instance; any
// thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::detection {

// picture (B, H p, W p, 3), 0 to 1 -> hidden (B, H, W, D): squares of p pixels plus their places,
// normalised. The table of places (1, 1 + n n, D), whose first row is not read, is laid side by
// side until it covers the grid.
struct Sam3Embed {
  static constexpr Info info{"sam3.embed",  1,  "SAM 3 patches",
                             "blocks/sam3", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> picture{"picture"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight patches{"patches.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight places{"places"};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(picture, eps, patches, places, norm, norm_bias, out);
  static void execute(Context& ctx);
};

// -> cos, sin (side side, head / 2) f32: how queries and keys of a grid turn, the first half of a
// head with columns, the second with rows, of which `step` is one.
struct Sam3Rotation {
  static constexpr Info info{"sam3.rotation", 1,  "SAM 3 rotation",
                             "blocks/sam3",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<std::int64_t> side{"side", Widget{.number = 24}};
  static constexpr Input<std::int64_t> head{"head", Widget{.number = 64}};
  static constexpr Input<double> step{"step", Widget{.number = 1}};
  static constexpr Output<Tensor> cosines{"cos"};
  static constexpr Output<Tensor> sines{"sin"};
  static constexpr auto ports = heddle::ports(side, head, step, cosines, sines);
  static void execute(Context& ctx);
};

// hidden (B, H, W, D) -> the same. Attention within squares of `window` cells, which divides H and
// W; 0: of the whole grid.
struct Sam3Layer {
  static constexpr Info info{"sam3.layer", 1, "SAM 3 layer", "blocks/sam3", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> cosines{"cos"};
  static constexpr Input<Tensor> sines{"sin"};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 16}};
  static constexpr Input<std::int64_t> window{"window"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight norm1_bias{"norm1.bias"};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight qkv_bias{"qkv.bias"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight norm2_bias{"norm2.bias"};
  static constexpr Weight up{"up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"up.bias"};
  static constexpr Weight down{"down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"down.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, cosines, sines, heads, window, eps, norm1, norm1_bias, qkv, qkv_bias,
                    proj, proj_bias, norm2, norm2_bias, up, up_bias, down, down_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, H, W, D) -> grid (B, s H, s W, C): doubled as often as there are filters, with a GELU
// between, then a convolution of 1x1 and one of 3x3.
struct Sam3Level {
  static constexpr Info info{"sam3.level",  1,  "SAM 3 pyramid level",
                             "blocks/sam3", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight first{"first.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight first_bias{"first.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight second{"second.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight second_bias{"second.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight point{"point.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight point_bias{"point.bias"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"grid"};
  static constexpr auto ports = heddle::ports(hidden, first, first_bias, second, second_bias, point,
                                              point_bias, conv, conv_bias, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::detection
