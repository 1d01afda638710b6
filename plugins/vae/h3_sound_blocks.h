// plugins/vae/h3_sound_blocks.h - the block types of MiniMax H3's audio autoencoder. Source of the
// architecture: AutoencoderKLMiniMaxH3Audio of diffusers, by the publishers of the model. Shapes: B
// sounds of S channels, which are coded apart, N = B S; T points of time, C channels of hidden
// states, which are f32; only operands of products are in the compute type. Filters are (out, in,
// K), those that spread (in, out, K); with `gain` (out, 1, 1), or (in, 1, 1), each row is brought
// to that length. Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

// x (B, C, S, T) or (B, C, T) -> hidden (N, T, C). Of sound x is (B, S, T) and `sound` set: hidden
// (N, T', 1), T' the next multiple of `hop`, zeros behind it.
struct H3SoundIn {
  static constexpr Info info{"h3.sound_in", 1,  "H3 sound input",
                             "blocks/vae",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<bool> sound{"sound"};
  static constexpr Input<std::int64_t> hop{"hop", Widget{.number = 1}};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(x, sound, hop, out);
  static void execute(Context& ctx);
};

// The two halves of the filters (1, 1, 12) that double and halve the number of points around an
// activation: filters (4, 7, 1, C), for doubling the one of every second tap and the other, for
// halving likewise. The filters are symmetric.
struct H3SoundFilters {
  static constexpr Info info{"h3.sound_filters", 1,  "H3 sound filters",
                             "blocks/vae",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden", 0, "with C channels"};
  static constexpr Weight up{"up"};
  static constexpr Weight down{"down"};
  static constexpr Output<Tensor> out{"filters"};
  static constexpr auto ports = heddle::ports(hidden, up, down, out);
  static void execute(Context& ctx);
};

// hidden (N, T, C) -> (N, T', C'), plus `base` where that is given: an activation and a filter.
// The activation is x + sin(a x)^2 / b: with alpha alone a = b = alpha; with `filters` a = e^alpha
// and b = e^beta, at twice as many points. Without alpha there is none. Taps are `dilation` points
// apart, zeros around; a filter of 2 `stride` taps, of which the first reads (stride + 1) / 2
// points before its place, makes T' = T / stride points.
struct H3SoundConv {
  static constexpr Info info{"h3.sound_conv", 1,  "H3 sound filter",
                             "blocks/vae",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> base{"base", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> filters{"filters", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> dilation{"dilation", Widget{.number = 1}};
  static constexpr Input<std::int64_t> stride{"stride", Widget{.number = 1}};
  static constexpr Weight alpha{"alpha", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight beta{"beta", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight filter{"filter"};
  static constexpr Weight gain{"gain", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight bias{"bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, base, filters, dilation, stride, alpha, beta, filter, gain, bias, out);
  static void execute(Context& ctx);
};

// hidden (N, T, C) -> (N, s T, C'), s `factor`: each point is spread by K taps, of which the first
// stands (K - s) / 2 points before its place; K - s is even.
struct H3SoundUp {
  static constexpr Info info{"h3.sound_up", 1,  "H3 sound upsampling",
                             "blocks/vae",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> factor{"factor", Widget{.number = 2}};
  static constexpr Weight filter{"filter"};
  static constexpr Weight gain{"gain", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, factor, filter, gain, bias, out);
  static void execute(Context& ctx);
};

// hidden (N, T, D) -> (N, T, C): attention to what was before, whose heads are averaged, and within
// a head as many elements as make C of them; a projection of the input; and a gated MLP.
struct H3SoundProject {
  static constexpr Info info{"h3.sound_project", 1,  "H3 sound projection",
                             "blocks/vae",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 8}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight norm1_bias{"norm1.bias"};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight qkv_bias{"qkv.bias"};
  static constexpr Weight pooled{"pooled.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight pooled_bias{"pooled.bias"};
  static constexpr Weight norm3{"norm3.weight"};
  static constexpr Weight norm3_bias{"norm3.bias"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight norm2_bias{"norm2.bias"};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight gate{"gate.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight gate_bias{"gate.bias"};
  static constexpr Weight up{"up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"up.bias"};
  static constexpr Weight down{"down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"down.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, heads, eps, norm1, norm1_bias, qkv, qkv_bias, pooled, pooled_bias,
                    norm3, norm3_bias, proj, proj_bias, norm2, norm2_bias, norm, norm_bias, gate,
                    gate_bias, up, up_bias, down, down_bias, out);
  static void execute(Context& ctx);
};

// hidden (N, T, 1) and x, the input -> out (B, S, T) f32 from -1 to 1. Of a latent (`sound` unset)
// hidden is (N, T, C) and out (B, C, S, T) f32.
struct H3SoundOut {
  static constexpr Info info{"h3.sound_out", 1,  "H3 sound output",
                             "blocks/vae",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<bool> sound{"sound"};
  static constexpr Output<Tensor> out{"out"};
  static constexpr auto ports = heddle::ports(hidden, x, sound, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::vae
