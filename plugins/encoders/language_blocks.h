// plugins/encoders/language_blocks.h - the blocks of decoder-only language models
// (language_model.h) that encode texts. Shapes: B batch, S tokens, D width, H heads of d, K heads
// of keys and values, F width of the gated MLP. Hidden states are f32 between blocks; only operands
// of matrix products are in the compute type. Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/abi/ops.h>
#include <heddle/node.hpp>

namespace heddle::encoders {

// ids (B, S) -> hidden (B, S, D): rows of the table, times `scale`. With pictures (1|B, S, D) among
// the texts, `is_text` (1|B, S, 1) is 1 where a row of the table counts and 0 where it does not;
// there `pictures` has what counts, elsewhere 0.
struct LanguageEmbed {
  static constexpr Info info{"language.embed",  1,  "Language model embedding",
                             "blocks/language", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> ids{"ids"};
  static constexpr Input<Tensor> pictures{"pictures", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> is_text{"is_text", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<double> scale{"scale", Widget{.number = 1}};
  static constexpr Weight tokens{"tokens", HEDDLE_USE_TABLE};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(ids, pictures, is_text, scale, tokens, out);
  static void execute(Context& ctx);
};

// The shape of ids (B, S) -> cos, sin (S, d/2) f32 of the positions 0 to S - 1. With `positions`
// (S, 3), of time, row and column: of the d/2 pairs the first `section_0` turn with the time, the
// next `section_1` with the row, and the last `section_2` with the column. `interleaved`: of the
// first 3 section_1 pairs each second of three turns with the row, of the first 3 section_2 each
// third with the column, all others with the time. Without positions, those of the ids from
// `unpadded` (n) on, of which the shape is read, are `padding_at`, where that is not negative.
// Positions are divided by `factor` (linear scaling). Of the pairs, those from `turning` on do not
// turn; 0: all turn. Behind these columns come `still_pairs` that turn nothing:
// (S, d/2 + still_pairs).
struct LanguageRope {
  static constexpr Info info{"language.rope",   1,  "Language model rotary table",
                             "blocks/language", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> ids{"ids", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> positions{"positions", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> unpadded{"unpadded", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> padding_at{"padding_at", Widget{.number = -1}};
  static constexpr Input<std::int64_t> section_0{"section_0", Widget{.number = 16}};
  static constexpr Input<std::int64_t> section_1{"section_1", Widget{.number = 24}};
  static constexpr Input<std::int64_t> section_2{"section_2", Widget{.number = 24}};
  static constexpr Input<bool> interleaved{"interleaved", Widget{.number = 0}};
  static constexpr Input<std::int64_t> head{"head", Widget{.number = 128}};
  static constexpr Input<std::int64_t> still_pairs{"still_pairs", Widget{.number = 0}};
  static constexpr Input<double> theta{"theta", Widget{.number = 10000}};
  static constexpr Input<double> factor{"factor", Widget{.number = 1}};
  static constexpr Input<std::int64_t> turning{"turning", Widget{.number = 0}};
  static constexpr Output<Tensor> cos{"cos"};
  static constexpr Output<Tensor> sin{"sin"};
  static constexpr auto ports =
      heddle::ports(ids, positions, unpadded, padding_at, section_0, section_1, section_2,
                    interleaved, head, still_pairs, theta, factor, turning, cos, sin);
  static void execute(Context& ctx);
};

// hidden (B, S, D) -> the same. A token sees itself and those before it; with a `window`, that many
// of them. Their scores are divided by the root of `query_size` (0: of d) and capped by `cap`
// (abi/ops.h). Norms multiply by `norm_shift` + weight.
// Slots of what a model lacks stay empty: biases, norms of queries and keys, norms behind attention
// and MLP. With `unpadded` (n), of which only the shape is read, tokens from n on are padding: they
// see the first n, and nobody sees them. Row `deep_row` of `deep` (n, S, D) f32 is added to what
// comes out. With `gates_results` the rows of a head's query in `qkv` are followed by as many of
// gates, by 1 / (1 + exp(-gate)) of which what the head sees is multiplied. Of a head the first
// `turned` elements turn (0: all). `v` is filled where a file has quantised values in another
// way than queries and keys; then qkv has none.
struct LanguageLayer {
  static constexpr Info info{"language.layer",  1,  "Language model layer",
                             "blocks/language", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> cos{"cos"};
  static constexpr Input<Tensor> sin{"sin"};
  static constexpr Input<Tensor> unpadded{"unpadded", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> deep{"deep", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> deep_row{"deep_row", Widget{.number = 0}};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 28}};
  static constexpr Input<std::int64_t> kv_heads{"kv_heads", Widget{.number = 4}};
  static constexpr Input<std::int64_t> window{"window", Widget{.number = 0}};
  static constexpr Input<std::int64_t> activation{"activation", Widget{.number = HEDDLE_ACT_SILU}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Input<double> norm_shift{"norm_shift", Widget{.number = 0}};
  static constexpr Input<double> query_size{"query_size", Widget{.number = 0}};
  static constexpr Input<double> cap{"cap", Widget{.number = 0}};
  // Whether the rotated pairs are neighbours (2i, 2i + 1), and not (i, i + d/2).
  static constexpr Input<bool> neighbours{"neighbours", Widget{.number = 0}};
  static constexpr Input<bool> gates_results{"gates_results", Widget{.number = 0}};
  static constexpr Input<std::int64_t> turned{"turned", Widget{.number = 0}};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight qkv_bias{"qkv.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight v{"v.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight v_bias{"v.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight q_norm{"q_norm.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight k_norm{"k_norm.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight after1{"after1.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight up{"mlp.up.weight", HEDDLE_USE_LINEAR};  // gate, then up: (2F, D)
  static constexpr Weight down{"mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight after2{"after2.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(
      hidden, cos, sin, unpadded, deep, deep_row, heads, kv_heads, window, activation, eps,
      norm_shift, query_size, cap, neighbours, gates_results, turned, norm1, qkv, qkv_bias, v,
      v_bias, q_norm, k_norm, proj, after1, norm2, up, down, after2, out);
  static void execute(Context& ctx);
};

// hidden (B, S, D) -> the same.
struct LanguageFinish {
  static constexpr Info info{"language.finish", 1,  "Language model final norm",
                             "blocks/language", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Input<double> norm_shift{"norm_shift", Widget{.number = 0}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, eps, norm_shift, norm, out);
  static void execute(Context& ctx);
};

// Up to twelve states (B, S, any) side by side: (B, S, the sum of their widths).
struct LanguageJoin {
  static constexpr Info info{"language.join",   1,  "Language model layers, joined",
                             "blocks/language", "", HEDDLE_NODE_BLOCK};
  // In their order, those that are there before those that are not.
  static constexpr Input<Tensor> states[] = {Input<Tensor>{"first"},
                                             Input<Tensor>{"second", HEDDLE_PORT_OPTIONAL},
                                             Input<Tensor>{"third", HEDDLE_PORT_OPTIONAL},
                                             Input<Tensor>{"fourth", HEDDLE_PORT_OPTIONAL},
                                             Input<Tensor>{"fifth", HEDDLE_PORT_OPTIONAL},
                                             Input<Tensor>{"sixth", HEDDLE_PORT_OPTIONAL},
                                             Input<Tensor>{"seventh", HEDDLE_PORT_OPTIONAL},
                                             Input<Tensor>{"eighth", HEDDLE_PORT_OPTIONAL},
                                             Input<Tensor>{"ninth", HEDDLE_PORT_OPTIONAL},
                                             Input<Tensor>{"tenth", HEDDLE_PORT_OPTIONAL},
                                             Input<Tensor>{"eleventh", HEDDLE_PORT_OPTIONAL},
                                             Input<Tensor>{"twelfth", HEDDLE_PORT_OPTIONAL}};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(states[0], states[1], states[2], states[3], states[4], states[5], states[6],
                    states[7], states[8], states[9], states[10], states[11], out);
  static void execute(Context& ctx);
};

}  // namespace heddle::encoders
