// plugins/encoders/language_writing_blocks.h - the blocks of a language model that writes a text
// token by token (language_model.h, "writes_texts"): layers that take keys and values of the tokens
// before, and hand out those of their own, and the scores of the next token. Shapes as in
// language_blocks.h; C: tokens that there is room for. Blocks are pure and have no instance; any
// thread.
#pragma once

#include "language_blocks.h"

namespace heddle::encoders {

// As LanguageLayer, without padding. kept_out (1, S, 2 K d), in the compute type, has the rotated
// keys of its tokens, behind them their values. Given `kept` (1, C, 2 K d), S is 1, and the token
// sees those of them at which `seen` (1, C + 1) f32, which is added to scores, is 0 and not far
// below it; its last place is the token itself.
struct LanguageKeptLayer {
  using L = LanguageLayer;
  static constexpr Info info{
      "language.layer.kept", 1,  "Language model layer that keeps keys and values",
      "blocks/language",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> kept{"kept", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> seen{"seen", HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> kept_out{"kept"};
  static constexpr auto ports =
      heddle::ports(L::hidden, L::cos, L::sin, L::unpadded, L::deep, kept, seen, L::deep_row,
                    L::heads, L::kv_heads, L::window, L::activation, L::eps, L::norm_shift,
                    L::query_size, L::cap, L::neighbours, L::gates_results, L::turned, L::norm1,
                    L::qkv, L::qkv_bias, L::v, L::v_bias, L::q_norm, L::k_norm, L::proj, L::after1,
                    L::norm2, L::up, L::down, L::after2, L::out, kept_out);
  static void execute(Context& ctx);
};

// hidden (B, S, D) -> logits (B, V) f32 of what comes behind the last token.
struct LanguageLogits {
  static constexpr Info info{"language.logits", 1,  "Language model scores of the next token",
                             "blocks/language", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Input<double> norm_shift{"norm_shift", Widget{.number = 0}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight matrix{"matrix", HEDDLE_USE_LINEAR};
  static constexpr Output<Tensor> out{"logits"};
  static constexpr auto ports = heddle::ports(hidden, eps, norm_shift, norm, matrix, out);
  static void execute(Context& ctx);
};

// What such a layer has besides; nothing in one that encodes.
struct KeptStates {
  const Input<Tensor>* given = nullptr;
  const Input<Tensor>* seen = nullptr;
  const Output<Tensor>* made = nullptr;
};
void run_language_layer(Context& ctx, const KeptStates& kept);
// The weight as norms multiply by it, in f32 where something is added to it.
Tensor shifted(Context& ctx, const Tensor& weight, double shift);
// Of any layer with the ports of LanguageLayer from `norm2` on: `middle` is what its attention made
// of the hidden state.
void finish_language_layer(Context& ctx, const Tensor& middle);

}  // namespace heddle::encoders
