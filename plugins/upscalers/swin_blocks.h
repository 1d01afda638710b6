// plugins/upscalers/swin_blocks.h - the layers of SwinIR and HAT: attention within windows, plain
// or beside a branch of convolutions, and to windows that overlap. Sources: Liang et al. 2021,
// arXiv 2108.10257; Chen et al. 2023, arXiv 2205.04437. Hidden states are (B, H, W, C), sides
// multiples of the window's; ids and masks are those of windows.h. Blocks are pure and have no
// instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::upscalers {

// hidden -> hidden. Shifted where there are masks.
struct SwinLayer {
  static constexpr Info info{"swin.layer",       1,  "Window attention layer",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> ids{"ids"};
  static constexpr Input<Tensor> masks{"masks", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 6}};
  static constexpr Input<std::int64_t> window{"window", Widget{.number = 8}};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight norm1_bias{"norm1.bias"};
  static constexpr Weight table{"table", HEDDLE_USE_TABLE};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight qkv_bias{"qkv.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight norm2_bias{"norm2.bias"};
  static constexpr Weight fc1{"fc1.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight fc1_bias{"fc1.bias"};
  static constexpr Weight fc2{"fc2.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight fc2_bias{"fc2.bias"};
  // Of HAT: two convolutions and channel attention, added to what the windows give.
  static constexpr Weight conv1{"conv1.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight conv1_bias{"conv1.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight conv2{"conv2.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight conv2_bias{"conv2.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight squeeze{"squeeze.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight squeeze_bias{"squeeze.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight excite{"excite.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight excite_bias{"excite.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, ids, masks, heads, window, norm1, norm1_bias, table, qkv, qkv_bias,
                    proj, proj_bias, norm2, norm2_bias, fc1, fc1_bias, fc2, fc2_bias, conv1,
                    conv1_bias, conv2, conv2_bias, squeeze, squeeze_bias, excite, excite_bias, out);
  static void execute(Context& ctx);
};

// hidden -> hidden: windows that see `reach` rows and columns around them.
struct OverlapLayer {
  static constexpr Info info{"swin.overlap",     1,  "Overlapping window attention layer",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> ids{"ids"};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 6}};
  static constexpr Input<std::int64_t> window{"window", Widget{.number = 16}};
  static constexpr Input<std::int64_t> reach{"reach", Widget{.number = 24}};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight norm1_bias{"norm1.bias"};
  static constexpr Weight table{"table", HEDDLE_USE_TABLE};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight qkv_bias{"qkv.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight norm2_bias{"norm2.bias"};
  static constexpr Weight fc1{"fc1.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight fc1_bias{"fc1.bias"};
  static constexpr Weight fc2{"fc2.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight fc2_bias{"fc2.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, ids, heads, window, reach, norm1, norm1_bias, table, qkv, qkv_bias,
                    proj, proj_bias, norm2, norm2_bias, fc1, fc1_bias, fc2, fc2_bias, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::upscalers
