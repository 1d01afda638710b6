// plugins/upscalers/dat_blocks.h - the layers of DAT: attention within rectangles of tokens, or
// between channels, beside a convolution of each channel by itself, either weighed by what the
// other makes. Source: Chen et al. 2023, arXiv 2308.03364. Hidden states are (B, H, W, C) of any
// sides. Convolutions have norms by running means and variances behind them, as they were trained.
// Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::upscalers {

// -> bias (1, heads, N, N) f32 of windows of height x width: an MLP makes it of the distance of
// each pair of tokens.
struct DatBias {
  static constexpr Info info{"dat.bias",         1,  "DAT position bias",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> ids{"ids"};
  static constexpr Input<std::int64_t> height{"height", Widget{.number = 8}};
  static constexpr Input<std::int64_t> width{"width", Widget{.number = 16}};
  static constexpr Weight in{"in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight in_bias{"in.bias"};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight norm1_bias{"norm1.bias"};
  static constexpr Weight fc1{"fc1.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight fc1_bias{"fc1.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight norm2_bias{"norm2.bias"};
  static constexpr Weight fc2{"fc2.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight fc2_bias{"fc2.bias"};
  static constexpr Weight norm3{"norm3.weight"};
  static constexpr Weight norm3_bias{"norm3.bias"};
  static constexpr Weight fc3{"fc3.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight fc3_bias{"fc3.bias"};
  static constexpr Output<Tensor> bias{"bias"};
  static constexpr auto ports =
      heddle::ports(ids, height, width, in, in_bias, norm1, norm1_bias, fc1, fc1_bias, norm2,
                    norm2_bias, fc2, fc2_bias, norm3, norm3_bias, fc3, fc3_bias, bias);
  static void execute(Context& ctx);
};

// hidden -> qkv (B, H, W, 3 C), and side (B, H, W, C): what the convolution makes of the values.
struct DatIn {
  static constexpr Info info{"dat.in",           1,  "DAT layer input",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight qkv_bias{"qkv.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight filter{"filter"};
  static constexpr Weight filter_bias{"filter.bias"};
  static constexpr Weight mean{"mean"};
  static constexpr Weight variance{"variance"};
  static constexpr Weight gain{"gain"};
  static constexpr Weight shift{"shift"};
  static constexpr Output<Tensor> projected{"qkv"};
  static constexpr Output<Tensor> side{"side"};
  static constexpr auto ports =
      heddle::ports(hidden, norm, norm_bias, qkv, qkv_bias, filter, filter_bias, mean, variance,
                    gain, shift, projected, side);
  static void execute(Context& ctx);
};

// qkv (B, H, W, 3 C) -> attended (B, H, W, C): the first half of the channels within windows of
// height x width, the other within those of width x height. Sides are completed by zeros. Shifted
// by half of them where there are masks.
struct DatWindows {
  static constexpr Info info{"dat.windows",      1,  "DAT window attention",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> qkv{"qkv"};
  static constexpr Input<Tensor> upright{"upright", 0, "the first half's bias"};
  static constexpr Input<Tensor> lying{"lying", 0, "the other half's bias"};
  static constexpr Input<Tensor> upright_masks{"upright_masks", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> lying_masks{"lying_masks", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 3}, "of a half"};
  static constexpr Input<std::int64_t> height{"height", Widget{.number = 8}};
  static constexpr Input<std::int64_t> width{"width", Widget{.number = 16}};
  static constexpr Output<Tensor> out{"attended"};
  static constexpr auto ports =
      heddle::ports(qkv, upright, lying, upright_masks, lying_masks, heads, height, width, out);
  static void execute(Context& ctx);
};

// qkv (B, H, W, 3 C) -> attended (B, H, W, C): each channel is a mean of those of its head, by how
// alike queries and keys are over the whole picture.
struct DatChannels {
  static constexpr Info info{"dat.channels",     1,  "DAT channel attention",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> qkv{"qkv"};
  static constexpr Weight temperature{"temperature"};
  static constexpr Output<Tensor> out{"attended"};
  static constexpr auto ports = heddle::ports(qkv, temperature, out);
  static void execute(Context& ctx);
};

// hidden, attended, side (B, H, W, C) -> hidden: both weighed, projected, an MLP with a gate. What
// weighs channels is made of attended where `by_channel`, else of side; what weighs places, of the
// other one; and each weighs what it is not made of.
struct DatOut {
  static constexpr Info info{"dat.out",          1,  "DAT layer output",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> attended{"attended"};
  static constexpr Input<Tensor> side{"side"};
  static constexpr Input<bool> by_channel{"by_channel", Widget{.number = 0}};
  static constexpr Weight channel_in{"channel.in.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight channel_in_bias{"channel.in.bias"};
  static constexpr Weight channel_mean{"channel.mean"};
  static constexpr Weight channel_variance{"channel.variance"};
  static constexpr Weight channel_gain{"channel.gain"};
  static constexpr Weight channel_shift{"channel.shift"};
  static constexpr Weight channel_out{"channel.out.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight channel_out_bias{"channel.out.bias"};
  static constexpr Weight place_in{"place.in.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight place_in_bias{"place.in.bias"};
  static constexpr Weight place_mean{"place.mean"};
  static constexpr Weight place_variance{"place.variance"};
  static constexpr Weight place_gain{"place.gain"};
  static constexpr Weight place_shift{"place.shift"};
  static constexpr Weight place_out{"place.out.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight place_out_bias{"place.out.bias"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight fc1{"fc1.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight fc1_bias{"fc1.bias"};
  static constexpr Weight gate_norm{"gate.norm.weight"};
  static constexpr Weight gate_norm_bias{"gate.norm.bias"};
  static constexpr Weight gate{"gate"};
  static constexpr Weight gate_bias{"gate.bias"};
  static constexpr Weight fc2{"fc2.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight fc2_bias{"fc2.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, attended, side, by_channel, channel_in, channel_in_bias, channel_mean,
                    channel_variance, channel_gain, channel_shift, channel_out, channel_out_bias,
                    place_in, place_in_bias, place_mean, place_variance, place_gain, place_shift,
                    place_out, place_out_bias, proj, proj_bias, norm, norm_bias, fc1, fc1_bias,
                    gate_norm, gate_norm_bias, gate, gate_bias, fc2, fc2_bias, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::upscalers
