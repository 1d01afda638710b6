// plugins/upscalers/compact.h - Real-ESRGAN's compact models (SRVGGNet): all convolutions at the
// size of what goes in; their result is put beside the enlarged picture. Source: the published
// models of Wang et al. 2021, arXiv 2107.10833. Inputs, outputs and settings as esrgan.h has them.
// Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/model.hpp>

namespace heddle::upscalers {

// image (B, H, W, C) -> hidden (B, H, W, F): a convolution, leaky by a slope for each channel.
struct CompactLayer {
  static constexpr Info info{"compact.layer",    1,  "Compact upscaler layer",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Weight slopes{"slopes"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, conv, conv_bias, slopes, out);
  static void execute(Context& ctx);
};

// hidden (B, H, W, F), image (B, H, W, C) -> image (B, s H, s W, C) f32, not clamped.
struct CompactOut {
  static constexpr Info info{"compact.out",      1,  "Compact upscaler output",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> image{"image"};
  static constexpr Input<std::int64_t> scale{"scale", Widget{.number = 4}};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"image"};
  static constexpr auto ports = heddle::ports(hidden, image, scale, conv, conv_bias, out);
  static void execute(Context& ctx);
};

struct Compact {
  static constexpr Family family{"realesrgan_compact", "upscaler", 1,
                                 "Compact Real-ESRGAN: a picture, larger"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::upscalers
