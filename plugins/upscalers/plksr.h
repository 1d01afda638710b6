// plugins/upscalers/plksr.h - PLKSR and RealPLKSR: convolutions with large filters of a part of the
// channels. Source: Lee et al. 2024, arXiv 2404.11848. Inputs, outputs and settings as esrgan.h has
// them. Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/model.hpp>

namespace heddle::upscalers {

// image (B, H, W, 3) -> hidden (B, H, W, F).
struct PlkIn {
  static constexpr Info info{"plksr.in",         1,  "PLKSR picture input",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> image{"image"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(image, conv, conv_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, H, W, F) -> the same: two convolutions with GELU, or Mish, between them, a large one
// of the first channels, each number by the sigmoid of a convolution (where there is one), one of
// 1x1. norm: of what comes in, over channels; groups_norm: of what goes out, over groups of them.
struct PlkLayer {
  static constexpr Info info{"plksr.layer",      1,  "PLKSR layer",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<bool> mish{"mish", Widget{.number = 0}};
  static constexpr Weight norm{"norm.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm_bias{"norm.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight mix1{"mix1.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight mix1_bias{"mix1.bias"};
  static constexpr Weight mix2{"mix2.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight mix2_bias{"mix2.bias"};
  static constexpr Weight large{"large.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight large_bias{"large.bias"};
  static constexpr Weight share{"share.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight share_bias{"share.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight refine{"refine.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight refine_bias{"refine.bias"};
  static constexpr Weight groups_norm{"groups.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight groups_bias{"groups.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, mish, norm, norm_bias, mix1, mix1_bias, mix2,
                                              mix2_bias, large, large_bias, share, share_bias,
                                              refine, refine_bias, groups_norm, groups_bias, out);
  static void execute(Context& ctx);
};

struct Plksr {
  static constexpr Family family{"plksr", "upscaler", 1, "PLKSR, RealPLKSR: a picture, larger"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::upscalers
