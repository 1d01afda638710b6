// plugins/upscalers/frame_blocks.h - the block types before, between and behind the layers of
// upscalers that are transformers (SwinIR, HAT, DAT): Liang et al. 2021, arXiv 2108.10257. Grids
// are (B, H, W, C). Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::upscalers {

// image (B, H, W, C) in [0, 1] -> hidden (B, H'/f, W'/f, F): sides completed to multiples by a
// mirror, colours around their mean times the range, unshuffled by f, a convolution. tokens:
// hidden, normalised where there is a norm. pixels (B, H'/f, W'/f, C f f): what the convolution
// saw.
struct FrameIn {
  static constexpr Info info{"frame.in",         1,  "Upscaler picture input",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> image{"image"};
  static constexpr Input<std::int64_t> multiple{"multiple", Widget{.number = 1}};
  static constexpr Input<std::int64_t> unshuffle{"unshuffle", Widget{.number = 1}};
  static constexpr Input<double> range{"range", Widget{.number = 1}};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Weight norm{"norm.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm_bias{"norm.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> hidden{"hidden"};
  static constexpr Output<Tensor> tokens{"tokens"};
  static constexpr Output<Tensor> pixels{"pixels"};
  static constexpr auto ports = heddle::ports(image, multiple, unshuffle, range, conv, conv_bias,
                                              norm, norm_bias, hidden, tokens, pixels);
  static void execute(Context& ctx);
};

// hidden (B, H, W, F), base, of where a group of layers or all of them began -> the same: hidden,
// normalised where there is a norm, through one convolution, or three of which the second is of
// 1x1; through none where there are no filters; plus base.
struct FrameJoin {
  static constexpr Info info{"frame.join",       1,  "Upscaler residual convolution",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> base{"base"};
  static constexpr Weight norm{"norm.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm_bias{"norm.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight first{"first.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight first_bias{"first.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight point{"point.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight point_bias{"point.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight conv_bias{"conv.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, base, norm, norm_bias, first, first_bias,
                                              point, point_bias, conv, conv_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, H, W, F) -> (B, s H, s W, F'): a convolution, leaky by `slope` (1: as it is), whose
// channels become pixels where s is above 1.
struct FrameConv {
  static constexpr Info info{"frame.conv",       1,  "Upscaler convolution",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<double> slope{"slope", Widget{.number = 1}};
  static constexpr Input<std::int64_t> scale{"scale", Widget{.number = 1}};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, slope, scale, conv, conv_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, H, W, F) [, pixels of FrameIn, which are added] -> image (B, s h, s w, C) f32, not
// clamped, of image's sides h and w: a convolution, its channels made pixels where `shuffle` is
// above 1, in colours again.
struct FrameOut {
  static constexpr Info info{"frame.out",        1,  "Upscaler picture output",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> image{"image", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> pixels{"pixels", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> scale{"scale", Widget{.number = 1}};
  static constexpr Input<std::int64_t> shuffle{"shuffle", Widget{.number = 1}};
  static constexpr Input<double> range{"range", Widget{.number = 1}};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"image"};
  static constexpr auto ports =
      heddle::ports(hidden, image, pixels, scale, shuffle, range, conv, conv_bias, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::upscalers
