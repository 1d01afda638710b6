// plugins/upscalers/esrgan_blocks.h - the block types of ESRGAN, written down as programs over the
// op catalogue. Source of the architecture: Wang et al. 2018, arXiv 1809.00219 (residual in
// residual dense blocks); of the pixels that are put into channels: Wang et al. 2021, arXiv
// 2107.10833 (Real-ESRGAN). Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::upscalers {

// image (B, H, W, C) in [0, 1] -> hidden (B, H/f, W/f, F), f the unshuffling.
struct EsrganIn {
  static constexpr Info info{"esrgan.in",        1,  "ESRGAN picture input",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> image{"image"};
  static constexpr Input<std::int64_t> unshuffle{"unshuffle", Widget{.number = 1}};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(image, unshuffle, conv, conv_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, H, W, F) -> the same: five convolutions, each of which sees what all before it made.
// `base`, of the third one of a residual block: where the block began.
struct EsrganDense {
  static constexpr Info info{"esrgan.dense",     1,  "ESRGAN dense block",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> base{"base", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight conv1{"conv1.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv1_bias{"conv1.bias"};
  static constexpr Weight conv2{"conv2.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv2_bias{"conv2.bias"};
  static constexpr Weight conv3{"conv3.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv3_bias{"conv3.bias"};
  static constexpr Weight conv4{"conv4.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv4_bias{"conv4.bias"};
  static constexpr Weight conv5{"conv5.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv5_bias{"conv5.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, base, conv1, conv1_bias, conv2, conv2_bias, conv3, conv3_bias, conv4,
                    conv4_bias, conv5, conv5_bias, out);
  static void execute(Context& ctx);
};

// hidden, first (B, H, W, F) -> the same: the end of all residual blocks, and where they began.
struct EsrganTrunk {
  static constexpr Info info{"esrgan.trunk",     1,  "ESRGAN trunk",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> first{"first"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, first, conv, conv_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, H, W, F) -> (B, 2 H, 2 W, F).
struct EsrganUpsample {
  static constexpr Info info{"esrgan.upsample",  1,  "ESRGAN upsampling",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, conv, conv_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, H, W, F) -> image (B, H, W, C) f32, not clamped.
struct EsrganOut {
  static constexpr Info info{"esrgan.out",       1,  "ESRGAN picture output",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Weight last{"last.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight last_bias{"last.bias"};
  static constexpr Output<Tensor> image{"image"};
  static constexpr auto ports = heddle::ports(hidden, conv, conv_bias, last, last_bias, image);
  static void execute(Context& ctx);
};

}  // namespace heddle::upscalers
