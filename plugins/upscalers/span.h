// plugins/upscalers/span.h - SPAN: convolutions whose result is its own attention. Source: Wan et
// al. 2023, arXiv 2311.12770. Files hold a convolution as it was trained, three in a row and a
// short cut of 1x1 around them; it is computed so, or, by a loader that makes their weights
// (plugins/core/joined_convolutions.h), as one of 3x3. Inputs, outputs and settings as esrgan.h has
// them. Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/model.hpp>

namespace heddle::upscalers {

// image (B, H, W, C) in [0, 1] -> pixels (B, H, W, C): around their mean, times 255, where `norm`.
struct SpanIn {
  static constexpr Info info{"span.in",          1,  "SPAN picture input",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> image{"image"};
  static constexpr Input<bool> norm{"norm", Widget{.number = 1}};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(image, norm, out);
  static void execute(Context& ctx);
};

// hidden (B, H, W, C) -> (B, H, W, F): widen, filter and narrow, one after another, plus skip.
// silu: then SiLU. With `base` (B, H, W, F): (x + base) (sigmoid(x) - 1/2) of what has been made,
// x.
struct SpanConv {
  static constexpr Info info{"span.conv",        1,  "SPAN convolution",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> base{"base", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<bool> silu{"silu", Widget{.number = 0}};
  static constexpr Weight skip{"skip.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight skip_bias{"skip.bias"};
  static constexpr Weight widen{"widen.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight widen_bias{"widen.bias"};
  static constexpr Weight filter{"filter.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight filter_bias{"filter.bias"};
  static constexpr Weight narrow{"narrow.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight narrow_bias{"narrow.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, base, silu, skip, skip_bias, widen, widen_bias, filter, filter_bias,
                    narrow, narrow_bias, out);
  static void execute(Context& ctx);
};

// The same with one convolution of 3x3 in the place of the four.
struct SpanJoinedConv {
  static constexpr Info info{"span.joined_conv", 1,  "SPAN joined convolution",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> base{"base", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<bool> silu{"silu", Widget{.number = 0}};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, base, silu, conv, conv_bias, out);
  static void execute(Context& ctx);
};

// first, last, early, late (B, H, W, F), side by side -> image (B, s H, s W, C) f32, not clamped.
struct SpanOut {
  static constexpr Info info{"span.out",         1,  "SPAN picture output",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> first{"first"};
  static constexpr Input<Tensor> last{"last"};
  static constexpr Input<Tensor> early{"early"};
  static constexpr Input<Tensor> late{"late"};
  static constexpr Input<std::int64_t> scale{"scale", Widget{.number = 4}};
  static constexpr Weight mix{"mix.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight mix_bias{"mix.bias"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"image"};
  static constexpr auto ports =
      heddle::ports(first, last, early, late, scale, mix, mix_bias, conv, conv_bias, out);
  static void execute(Context& ctx);
};

struct Span {
  static constexpr Family family{"span", "upscaler", 1, "SPAN: a picture, larger"};
  static int match(const Checkpoint& file, const Value& config);
  // config: joins, a bool: whoever builds the model fills "<module>.eval_conv" of all modules in
  // the setting "joined_convolutions", a list of texts. Files that lack room for them are built as
  // they are.
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::upscalers
