// plugins/encoders/sound_blocks.h - the block types of encoders of sound: wav2vec 2.0, which reads
// the points of a sound, and Whisper, which reads the loudness of its bands. Sources of the
// architectures: Wav2Vec2Model and WhisperEncoder of transformers. Shapes: B sounds, T points of
// time, C channels, D width. Hidden states are f32 between blocks; only operands of products are in
// the compute type. Filters are (out, in, K). Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::encoders {

// hidden (B, T, C), or a sound (B, T), of one channel -> (B, (T - K) / stride + 1, C'): a filter,
// then a norm of each point's channels, or with `over_time` of each channel, where it has one, then
// GELU.
struct SoundFilter {
  static constexpr Info info{"sound.filter", 1,  "Sound filter",
                             "blocks/sound", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> stride{"stride", Widget{.number = 2}};
  static constexpr Input<bool> over_time{"over_time"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight filter{"filter"};
  static constexpr Weight bias{"bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm{"norm.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm_bias{"norm.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, stride, over_time, eps, filter, bias, norm, norm_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, T, C) -> (B, T, D): a norm and a projection.
struct SoundProject {
  static constexpr Info info{"sound.project", 1,  "Sound projection",
                             "blocks/sound",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, eps, norm, norm_bias, proj, proj_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, T, D) plus what tells where its points are: GELU of a filter (D, D / groups, K) with
// zeros around, K / 2 of them before the sound; K is even. Each of its K taps is brought to the
// length `gain` (1, 1, K). With a norm, it comes last.
struct SoundPlaces {
  static constexpr Info info{"sound.places", 1,  "Sound positions",
                             "blocks/sound", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight filter{"filter"};
  static constexpr Weight gain{"gain"};
  static constexpr Weight bias{"bias"};
  static constexpr Weight norm{"norm.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm_bias{"norm.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, eps, filter, gain, bias, norm, norm_bias, out);
  static void execute(Context& ctx);
};

// spectrum (B, T, C) -> hidden (B, T / 2, D): two filters of three taps with zeros around, the
// second of every other point, GELU behind each; plus positions.
struct SpectrumFilters {
  static constexpr Info info{"sound.spectrum", 1,  "Sound spectrum",
                             "blocks/sound",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> spectrum{"spectrum"};
  static constexpr Weight first{"first.weight"};
  static constexpr Weight first_bias{"first.bias"};
  static constexpr Weight second{"second.weight"};
  static constexpr Weight second_bias{"second.bias"};
  static constexpr Weight positions{"positions"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(spectrum, first, first_bias, second, second_bias, positions, out);
  static void execute(Context& ctx);
};

// A layer: hidden (B, T, D) -> the same: attention to all points, then an MLP with GELU. Norms
// stand before both, or, with norms_after, behind what they are added to.
struct SoundLayer {
  static constexpr Info info{"sound.layer",  1,  "Sound layer",
                             "blocks/sound", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 16}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Input<bool> norms_after{"norms_after"};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight norm1_bias{"norm1.bias"};
  static constexpr Weight q{"q.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight q_bias{"q.bias"};
  static constexpr Weight k{"k.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight k_bias{"k.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight v{"v.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight v_bias{"v.bias"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight norm2_bias{"norm2.bias"};
  static constexpr Weight up{"mlp.up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"mlp.up.bias"};
  static constexpr Weight down{"mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"mlp.down.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, heads, eps, norms_after, norm1, norm1_bias, q, q_bias, k, k_bias, v,
                    v_bias, proj, proj_bias, norm2, norm2_bias, up, up_bias, down, down_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, T, D) -> the same, normed.
struct SoundFinish {
  static constexpr Info info{"sound.finish", 1,  "Sound final norm",
                             "blocks/sound", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, eps, norm, norm_bias, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::encoders
