// plugins/encoders/delta_blocks.h - layers of a language model (language_model.h) that have, in the
// place of an attention, a gated delta rule (heddle/abi/delta_ops.h): linear attention whose
// memory is a matrix for each head, however long the text. Shapes as in language_blocks.h; besides
// K heads of queries and keys of k elements, H heads of values of e, C = 2 K k + H e channels, and
// a convolution over n tokens. Source: transformers' Qwen3_5GatedDeltaNet. Blocks are pure and have
// no instance; any thread.
#pragma once

#include "language_writing_blocks.h"

namespace heddle::encoders {

// hidden (B, S, D) -> the same. Each channel of queries, keys and values is a sum over its last n
// tokens; norms multiply by `norm_shift` + weight, but the one of what is read, which is gated.
struct LanguageDeltaLayer {
  using L = LanguageLayer;
  static constexpr Info info{"language.delta",  1,  "Language model layer, delta rule",
                             "blocks/language", "", HEDDLE_NODE_BLOCK};
  // Of K, k and H; e follows.
  static constexpr Input<std::int64_t> pairs{"pairs", Widget{.number = 16}};
  static constexpr Input<std::int64_t> depth{"depth", Widget{.number = 128}};
  static constexpr Input<std::int64_t> value_heads{"value_heads", Widget{.number = 32}};
  static constexpr Weight channels{"channels.weight", HEDDLE_USE_LINEAR};  // (C, D)
  static constexpr Weight gate{"gate.weight", HEDDLE_USE_LINEAR};          // (H e, D)
  // (2 H, D): how much is forgotten, then how much is learnt.
  static constexpr Weight rates{"rates.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight conv{"conv.weight"};                     // (C, 1, n)
  static constexpr Weight log_rate{"log_rate"};                    // (H)
  static constexpr Weight rate_shift{"rate_shift"};                // (H)
  static constexpr Weight norm{"norm.weight"};                     // (e)
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};  // (D, H e)
  static constexpr auto ports =
      heddle::ports(L::hidden, L::deep, L::deep_row, pairs, depth, value_heads, L::activation,
                    L::eps, L::norm_shift, L::norm1, channels, gate, rates, conv, log_rate,
                    rate_shift, norm, proj, L::norm2, L::up, L::down, L::after2, L::out);
  static void execute(Context& ctx);
};

// The same of the tokens behind others: the channels (1, n - 1, C) of the last of those, before
// the convolution, and the matrices (1, H, k, e), all f32; without them there are none before.
struct LanguageKeptDeltaLayer {
  using L = LanguageLayer;
  using B = LanguageDeltaLayer;
  static constexpr Info info{
      "language.delta.kept", 1,  "Language model layer, delta rule that keeps its state",
      "blocks/language",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> tail{"tail", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> state{"state", HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> tail_out{"tail"};
  static constexpr Output<Tensor> state_out{"state"};
  static constexpr auto ports =
      heddle::ports(L::hidden, L::deep, tail, state, L::deep_row, B::pairs, B::depth,
                    B::value_heads, L::activation, L::eps, L::norm_shift, L::norm1, B::channels,
                    B::gate, B::rates, B::conv, B::log_rate, B::rate_shift, B::norm, B::proj,
                    L::norm2, L::up, L::down, L::after2, L::out, tail_out, state_out);
  static void execute(Context& ctx);
};

}  // namespace heddle::encoders
