// plugins/vae/vocoder_band_blocks.h - what stands between and behind the two stages of LTX 2.3's
// vocoder (vocoder_stages.h). Source of the architecture: LTX2VocoderWithBWE of diffusers, by the
// publishers of the model. Shapes: B sounds of S channels, T points of time. All are f32, as
// logarithms of small numbers do not stand fewer bits. Blocks are pure and have no instance; any
// thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

// hidden (B, T, S) -> sound, the same from -limit to `limit` or, with `tanh`, its hyperbolic
// tangents, and hidden (B, T / h, S M), h `hop`: the logarithms of how loud M bands are, by a
// causal short-time Fourier transform of windows of N points, each h behind the one before. basis
// (2 F, 1, N): the windowed cosines, then the sines. bands (M, F). T is a multiple of h.
struct VocoderMel {
  static constexpr Info info{"vocoder.mel", 1,  "Vocoder spectrum of a sound",
                             "blocks/vae",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> hop{"hop", Widget{.number = 80}};
  static constexpr Input<double> limit{"limit", Widget{.number = 1}};
  static constexpr Input<bool> tanh{"tanh", Widget{}};
  static constexpr Weight basis{"basis"};
  static constexpr Weight bands{"bands"};
  static constexpr Output<Tensor> sound{"sound"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, hop, limit, tanh, basis, bands, sound, out);
  static void execute(Context& ctx);
};

// sound (B, T, S) and hidden (B, r T, S), r `ratio` -> waveform (B, S, r T) from -1 to 1: the sound
// at r times the rate (a sinc filter of six zero crossings under Hann's window, 0.99 of the band),
// plus hidden.
struct VocoderWiden {
  static constexpr Info info{"vocoder.widen", 1,  "Vocoder output of two stages",
                             "blocks/vae",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> sound{"sound"};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> ratio{"ratio", Widget{.number = 3}};
  static constexpr Output<Tensor> waveform{"waveform"};
  static constexpr auto ports = heddle::ports(sound, hidden, ratio, waveform);
  static void execute(Context& ctx);
};

}  // namespace heddle::vae
