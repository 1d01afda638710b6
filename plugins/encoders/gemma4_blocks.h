// plugins/encoders/gemma4_blocks.h - the blocks of Gemma 4 (gemma4_model.h) that other language
// models lack. Shapes as in language_blocks.h: B batch, S tokens, D width, H heads of d, K heads of
// keys and values; L layers, P what each is told of a token. Hidden states are f32 between blocks.
// Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/abi/ops.h>
#include <heddle/node.hpp>

namespace heddle::encoders {

// ids (B, S), hidden (B, S, D), as it was embedded -> told (B, S, L P) f32: for each layer what a
// token's own table of it and a projection of `hidden` say together.
struct Gemma4Told {
  static constexpr Info info{"language.gemma4.told", 1,  "Gemma 4: what layers are told of tokens",
                             "blocks/language",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> ids{"ids"};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight tokens{"tokens", HEDDLE_USE_TABLE};
  static constexpr Weight projection{"projection", HEDDLE_USE_LINEAR};  // (L P, D)
  static constexpr Weight norm{"norm.weight", HEDDLE_USE_VECTOR};       // (P)
  static constexpr Output<Tensor> out{"told"};
  static constexpr auto ports = heddle::ports(ids, hidden, eps, tokens, projection, norm, out);
  static void execute(Context& ctx);
};

// hidden (B, S, D) -> the same. A token sees itself and those before it; with a `window`, that many
// of them. Scores are not divided. Queries and keys are normed with weights, values without; where
// `own_values` is false, values are the keys before their norm. `told` has the layer's P numbers
// from `told_at` on; layers of models without it have none of its weights. `v` is filled where a
// file has quantised values in another way than queries and keys; then qkv has none. Tokens of one
// number in `groups` (S) f32 see each other, also those behind them.
struct Gemma4Layer {
  static constexpr Info info{"language.gemma4.layer", 1,  "Gemma 4 layer",
                             "blocks/language",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> cos{"cos"};
  static constexpr Input<Tensor> sin{"sin"};
  static constexpr Input<Tensor> told{"told", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> groups{"groups", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> told_at{"told_at", Widget{.number = 0}};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 8}};
  static constexpr Input<std::int64_t> kv_heads{"kv_heads", Widget{.number = 1}};
  static constexpr Input<std::int64_t> window{"window", Widget{.number = 0}};
  static constexpr Input<bool> own_values{"own_values", Widget{.number = 1}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight v{"v.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight q_norm{"q_norm.weight", HEDDLE_USE_VECTOR};
  static constexpr Weight k_norm{"k_norm.weight", HEDDLE_USE_VECTOR};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight after1{"after1.weight", HEDDLE_USE_VECTOR};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight up{"mlp.up.weight", HEDDLE_USE_LINEAR};  // gate, then up: (2F, D)
  static constexpr Weight down{"mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight after2{"after2.weight", HEDDLE_USE_VECTOR};
  static constexpr Weight told_gate{"told.gate", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight told_proj{"told.proj", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight told_norm{"told.norm", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight scalar{"scalar", HEDDLE_USE_VECTOR};  // (1): of what comes out
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, cos, sin, told, groups, told_at, heads, kv_heads, window, own_values,
                    eps, norm1, qkv, v, q_norm, k_norm, proj, after1, norm2, up, down, after2,
                    told_gate, told_proj, told_norm, scalar, out);
  static void execute(Context& ctx);
};

// As Gemma4Layer; kept_out (B, S, 2 K d), in the compute type, has the rotated keys of its tokens,
// behind them their values. Given `kept` (1, C, 2 K d), S is 1, and the token sees those of them at
// which `seen` (1, C + 1) f32, which is added to scores, is 0 and not far below it; its last place
// is the token itself.
struct Gemma4KeptLayer {
  using L = Gemma4Layer;
  static constexpr Info info{"language.gemma4.layer.kept",
                             1,
                             "Gemma 4 layer that keeps keys and values",
                             "blocks/language",
                             "",
                             HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> kept{"kept", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> seen{"seen", HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> kept_out{"kept"};
  static constexpr auto ports =
      heddle::ports(L::hidden, L::cos, L::sin, L::told, L::groups, kept, seen, L::told_at, L::heads,
                    L::kv_heads, L::window, L::own_values, L::eps, L::norm1, L::qkv, L::v,
                    L::q_norm, L::k_norm, L::proj, L::after1, L::norm2, L::up, L::down, L::after2,
                    L::told_gate, L::told_proj, L::told_norm, L::scalar, L::out, kept_out);
  static void execute(Context& ctx);
};

// As Gemma4Layer, with the keys and values of an earlier layer's tokens, `own` (B, S, 2 K d), and
// those before, `kept` and `seen`, as in Gemma4KeptLayer. "qkv.weight" has queries alone.
struct Gemma4SharingLayer {
  using L = Gemma4Layer;
  static constexpr Info info{"language.gemma4.layer.sharing",
                             1,
                             "Gemma 4 layer with the keys and values of another",
                             "blocks/language",
                             "",
                             HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> own{"own"};
  static constexpr Input<Tensor> kept{"kept", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> seen{"seen", HEDDLE_PORT_OPTIONAL};
  static constexpr auto ports = heddle::ports(
      L::hidden, L::cos, L::sin, L::told, L::groups, own, kept, seen, L::told_at, L::heads,
      L::kv_heads, L::window, L::eps, L::norm1, L::qkv, L::q_norm, L::proj, L::after1, L::norm2,
      L::up, L::down, L::after2, L::told_gate, L::told_proj, L::told_norm, L::scalar, L::out);
  static void execute(Context& ctx);
};

}  // namespace heddle::encoders
