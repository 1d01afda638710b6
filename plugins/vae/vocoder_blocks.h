// plugins/vae/vocoder_blocks.h - the block types of LTX 2's vocoder. Source of the architecture:
// LTX2Vocoder of diffusers, by the publishers of the model. Shapes: B sounds, T points of time, C
// channels. A filter over time is a matrix for each of its taps ("tap.0", "tap.1", ...). Hidden
// states are f32; only operands of matrix products are in the compute type. Blocks are pure and
// have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

#include <array>

namespace heddle::vae {

// The taps of a filter, as ports of a block.
struct VocoderTaps {
  static constexpr Weight tap0{"tap.0", HEDDLE_USE_LINEAR};
  static constexpr Weight tap1{"tap.1", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight tap2{"tap.2", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight tap3{"tap.3", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight tap4{"tap.4", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight tap5{"tap.5", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight tap6{"tap.6", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight tap7{"tap.7", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight tap8{"tap.8", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight tap9{"tap.9", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight tap10{"tap.10", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight tap11{"tap.11", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight tap12{"tap.12", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight tap13{"tap.13", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight tap14{"tap.14", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight tap15{"tap.15", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr std::array<const Weight*, 16> all{&tap0,  &tap1,  &tap2,  &tap3, &tap4,  &tap5,
                                                     &tap6,  &tap7,  &tap8,  &tap9, &tap10, &tap11,
                                                     &tap12, &tap13, &tap14, &tap15};
};

// mel (B, C, T, M) -> hidden (B, T, C M).
struct VocoderIn {
  static constexpr Info info{"vocoder.in", 1, "Vocoder input", "blocks/vae", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> mel{"mel"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(mel, out);
  static void execute(Context& ctx);
};

// hidden (B, T, C) -> (B, T, C'), plus `base` where that is given: a filter of an odd number of
// taps, `dilation` points apart, zeros around. Numbers below 0 are multiplied by `slope` before.
struct VocoderConv : VocoderTaps {
  static constexpr Info info{"vocoder.conv", 1,  "Vocoder filter",
                             "blocks/vae",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> base{"base", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<double> slope{"slope", Widget{.number = 1}};
  static constexpr Input<std::int64_t> dilation{"dilation", Widget{.number = 1}};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, base, slope, dilation, bias, tap0, tap1, tap2, tap3, tap4, tap5, tap6,
                    tap7, tap8, tap9, tap10, tap11, tap12, tap13, tap14, tap15, out);
  static void execute(Context& ctx);
};

// hidden (B, T, C) -> (B, s T, C'), s `factor`: each point is spread by K taps, of which the first
// stands (K - s) / 2 points before its place; K - s is even. slope as of VocoderConv.
struct VocoderUpsample : VocoderTaps {
  static constexpr Info info{"vocoder.upsample", 1,  "Vocoder upsampling",
                             "blocks/vae",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<double> slope{"slope", Widget{.number = 0.1}};
  static constexpr Input<std::int64_t> factor{"factor", Widget{.number = 2}};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, slope, factor, bias, tap0, tap1, tap2, tap3, tap4, tap5, tap6, tap7,
                    tap8, tap9, tap10, tap11, tap12, tap13, tap14, tap15, out);
  static void execute(Context& ctx);
};

// The sum of two, times `factor`, all (B, T, C).
struct VocoderSum {
  static constexpr Info info{"vocoder.sum", 1, "Vocoder sum", "blocks/vae", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> other{"other", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<double> factor{"factor", Widget{.number = 1}};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, other, factor, out);
  static void execute(Context& ctx);
};

// hidden (B, T, C) -> waveform (B, C, T) f32, their hyperbolic tangents.
struct VocoderOut {
  static constexpr Info info{"vocoder.out", 1,  "Vocoder output",
                             "blocks/vae",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Output<Tensor> waveform{"waveform"};
  static constexpr auto ports = heddle::ports(hidden, waveform);
  static void execute(Context& ctx);
};

}  // namespace heddle::vae
