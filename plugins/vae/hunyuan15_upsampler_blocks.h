// plugins/vae/hunyuan15_upsampler_blocks.h - the block types of the models that make latents of
// HunyuanVideo 1.5 sharper once they were resized, for 720 and for 1080 lines. Source of the
// architecture: ComfyUI's description of the published files. Activations are (T, H, W, C), the
// frames of one video; a causal convolution reads a frame and the two before it, and what lies
// beyond an edge, or before the first frame, is the edge's own. Filters are (O, C, 3, 3, 3). Blocks
// are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

// z (1, C, T, h, w) -> hidden (T, h, w, C'): a convolution, with `repeats` plus each number of z as
// often as C' has it.
struct Hunyuan15UpIn {
  static constexpr Info info{"hunyuan15.up_in", 1,  "Hunyuan upsampler input",
                             "blocks/vae",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> z{"z"};
  static constexpr Input<bool> repeats{"repeats", Widget{}};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(z, repeats, conv, conv_bias, out);
  static void execute(Context& ctx);
};

// hidden (T, h, w, C) -> the same plus three convolutions of it, with SiLU between them.
struct Hunyuan15UpResidual {
  static constexpr Info info{
      "hunyuan15.up_residual", 1, "Hunyuan upsampler residual block", "blocks/vae", "",
      HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight conv1{"conv1.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv1_bias{"conv1.bias"};
  static constexpr Weight conv2{"conv2.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv2_bias{"conv2.bias"};
  static constexpr Weight conv3{"conv3.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv3_bias{"conv3.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, conv1, conv1_bias, conv2, conv2_bias, conv3, conv3_bias, out);
  static void execute(Context& ctx);
};

// hidden (T, h, w, C) -> (T, h, w, C'): RMS norm, SiLU and a convolution, twice, plus what came in,
// where its channels change by a filter of one pixel, (C', C, 1, 1, 1).
struct Hunyuan15UpResnet {
  static constexpr Info info{"hunyuan15.up_resnet", 1,  "Hunyuan upsampler block with norms",
                             "blocks/vae",          "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight conv1{"conv1.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv1_bias{"conv1.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight conv2{"conv2.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv2_bias{"conv2.bias"};
  static constexpr Weight shortcut{"shortcut.filter", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight shortcut_bias{"shortcut.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, norm1, conv1, conv1_bias, norm2, conv2,
                                              conv2_bias, shortcut, shortcut_bias, out);
  static void execute(Context& ctx);
};

// hidden (T, h, w, C') -> larger (1, C, T, h, w) f32: a convolution, behind an RMS norm and SiLU
// where there is one.
struct Hunyuan15UpOut {
  static constexpr Info info{"hunyuan15.up_out", 1,  "Hunyuan upsampler output",
                             "blocks/vae",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight norm{"norm.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> larger{"larger"};
  static constexpr auto ports = heddle::ports(hidden, norm, conv, conv_bias, larger);
  static void execute(Context& ctx);
};

}  // namespace heddle::vae
