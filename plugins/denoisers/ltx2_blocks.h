// plugins/denoisers/ltx2_blocks.h - the block types of LTX 2 that those of LTX-Video and Wan
// (ltxv_blocks.h, wan_blocks.h) do not serve for: two transformers, over the tokens of a video and
// over those of its sound, that look at texts of their own and at each other in every layer. Source
// of the architecture: LTX2VideoTransformer3DModel of diffusers, by the publishers of the model.
// Shapes: B batch, T tokens of text, L tokens of this stream and D its width, M tokens of the other
// stream and E its width, I width of the attention between the streams, H heads, F' frames of this
// stream that have a noise level of their own, or 1, N steps. Norms have a root mean square and no
// mean; those of queries and keys go over all heads together. Hidden states are f32 between blocks;
// only operands of matrix products are in the compute type. Blocks are pure and have no instance;
// any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::denoisers {

// context (B|1, T, W) -> its part [begin, begin + width) of the last axis.
struct Ltx2TextPart {
  static constexpr Info info{"ltx2.text_part", 1,  "LTX 2 text of a stream",
                             "blocks/ltx2",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> context{"context"};
  static constexpr Input<std::int64_t> begin{"begin", Widget{}};
  static constexpr Input<std::int64_t> width{"width", Widget{.number = 1}};
  static constexpr Output<Tensor> out{"txt"};
  static constexpr auto ports = heddle::ports(context, begin, width, out);
  static void execute(Context& ctx);
};

// audio (B, C, L, K) of K bands -> hidden (B, L, D). A token has the bands of the first channel,
// then those of the next. voice (B|1, R, C K): tokens of another sound, which stand before these.
struct Ltx2AudioIn {
  static constexpr Info info{"ltx2.audio_in", 2,  "LTX 2 sound",
                             "blocks/ltx2",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> audio{"audio"};
  static constexpr Input<Tensor> voice{"voice", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(audio, voice, weight, bias, out);
  static void execute(Context& ctx);
};

// hidden (B, R + L, D), mod (1, F', 2 D) of LtxvModulation, audio for its shape and type -> out
// (B, C, L, K): of the last L tokens.
struct Ltx2AudioFinal {
  static constexpr Info info{"ltx2.audio_final", 2,  "LTX 2 output of sound",
                             "blocks/ltx2",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> mod{"mod"};
  static constexpr Input<Tensor> audio{"audio", HEDDLE_PORT_SHAPE};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"audio_out"};
  static constexpr auto ports = heddle::ports(hidden, mod, audio, eps, weight, bias, out);
  static void execute(Context& ctx);
};

// The rotary table of a latent's tokens: cos, sin (L, width / 2) f32. latent (B, C, F, height,
// width) or (B, C, L, K), which has places along time only. A token is at the middle of what it
// stands for: max(step i + offset, least) times frame_time (1) or, without it, `unit` seconds, rows
// and columns in pixels, as parts p of most_time seconds and most_height, most_width pixels. Of
// `axes` of them (1: time alone) each of n = width / (2 axes) frequencies pi / 2 theta^(i / (n -
// 1)) turns a pair by (2 p - 1) times itself, in this order; the pairs that are left stand before
// all others and do not turn. guide_frames (K, 2) f32: the pictures at which the last K frames of a
// video begin and end, between which they stand instead, or (K, 3), as put_guides() has it;
// token_rows (T) i32: of the places of a video those that are tokens. voice (B|1, R, C): R tokens
// stand before those of a sound, as if they were one that ends a token before it.
struct Ltx2Rope {
  static constexpr Info info{"ltx2.rope",   3,  "LTX 2 rotary table",
                             "blocks/ltx2", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> latent{"latent", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> frame_time{"frame_time", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> guide_frames{"guide_frames", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> token_rows{"token_rows", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> voice{"voice", HEDDLE_PORT_SHAPE | HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> width{"width", Widget{.number = 4096}};
  static constexpr Input<std::int64_t> axes{"axes", Widget{.number = 3}};
  static constexpr Input<double> step{"step", Widget{.number = 8}};
  static constexpr Input<double> offset{"offset", Widget{.number = -3}};
  static constexpr Input<double> least{"least", Widget{.number = 0.5}};
  static constexpr Input<double> unit{"unit", Widget{.number = 1}};
  static constexpr Input<double> side_pixels{"side_pixels", Widget{.number = 32}};
  static constexpr Input<double> most_time{"most_time", Widget{.number = 20}};
  static constexpr Input<double> most_height{"most_height", Widget{.number = 2048}};
  static constexpr Input<double> most_width{"most_width", Widget{.number = 2048}};
  static constexpr Input<double> theta{"theta", Widget{.number = 10000}};
  static constexpr Output<Tensor> cos{"cos"};
  static constexpr Output<Tensor> sin{"sin"};
  static constexpr auto ports =
      heddle::ports(latent, frame_time, guide_frames, token_rows, voice, width, axes, step, offset,
                    least, unit, side_pixels, most_time, most_height, most_width, theta, cos, sin);
  static void execute(Context& ctx);
};

// shared (N, 1, 4 D) and gate (N, 1, D) plus table (5, D) -> mod (N, 1, 5 D): 1 + scale and shift
// of this stream where the video looks at the sound, both where the sound looks at the video, and
// the gate of what this stream sees.
struct Ltx2CrossModulation {
  static constexpr Info info{"ltx2.cross_modulation", 1,  "LTX 2 modulation between streams",
                             "blocks/ltx2",           "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> shared{"shared"};
  static constexpr Input<Tensor> gate{"gate"};
  static constexpr Weight table{"table"};
  static constexpr Output<Tensor> out{"mod"};
  static constexpr auto ports = heddle::ports(shared, gate, table, out);
  static void execute(Context& ctx);
};

// What a layer's queries look at: seen (B|1, T, D) -> kv (B, T, 2 D), keys, then values. x tells B.
// With a table (2, D), which `shared` (1, 1, 2 D) adds to where the model has it, shift and scale:
// seen (1 + scale) + shift is looked at. `point`, whatever changes with the step, has them made in
// every step: without it the block would run once, with the rows of `shared` of all steps. Devices
// of a group then make those of some of the tokens each, and have those of all.
struct Ltx2Keys {
  static constexpr Info info{"ltx2.keys",   1,  "LTX 2 keys and values",
                             "blocks/ltx2", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> seen{"seen", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> shared{"shared", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> point{"point", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight table{"table", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight k{"k.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight k_bias{"k.bias", HEDDLE_USE_BIAS};
  static constexpr Weight v{"v.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight v_bias{"v.bias", HEDDLE_USE_BIAS};
  static constexpr Weight norm{"k_norm.weight"};
  static constexpr Output<Tensor> out{"kv"};
  static constexpr auto ports =
      heddle::ports(seen, shared, x, point, eps, table, k, k_bias, v, v_bias, norm, out);
  static void execute(Context& ctx);
};

// The first part of a layer, of one stream: it looks at itself, then at the text. hidden (B, L, D)
// -> the same. mod (1, F', 6 D or 9 D) of LtxvModulation: shift, 1 + scale and gate of the first
// attention, of the MLP, and, with 9, of the second attention, which has none otherwise. text_kv
// (B, T, 2 D) of Ltx2Keys; cos, sin (L, D / 2). With `gates` (H, D) what each head sees counts by
// 2 sigmoid(gates input). guide_weights (G) f32: of GuidedAttention (ltxv_guides.h). is_split: of a
// head of 2 r numbers the pairs that are turned are (i, r + i), else (2 i, 2 i + 1). A group of
// devices may have some of the tokens each.
struct Ltx2Attend {
  static constexpr Info info{"ltx2.attend", 3,  "LTX 2 attentions of a stream",
                             "blocks/ltx2", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> mod{"mod"};
  static constexpr Input<Tensor> text_kv{"text_kv"};
  static constexpr Input<Tensor> cos{"cos"};
  static constexpr Input<Tensor> sin{"sin"};
  static constexpr Input<Tensor> guide_weights{"guide_weights", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 32}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Input<bool> is_split{"is_split", Widget{.number = 1}};
  static constexpr Weight q{"q.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight q_bias{"q.bias", HEDDLE_USE_BIAS};
  static constexpr Weight k{"k.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight k_bias{"k.bias", HEDDLE_USE_BIAS};
  static constexpr Weight v{"v.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight v_bias{"v.bias", HEDDLE_USE_BIAS};
  static constexpr Weight q_norm{"q_norm.weight"};
  static constexpr Weight k_norm{"k_norm.weight"};
  static constexpr Weight gates{"gates.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight gates_bias{"gates.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias", HEDDLE_USE_BIAS};
  static constexpr Weight text_q{"text_q.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight text_q_bias{"text_q.bias", HEDDLE_USE_BIAS};
  static constexpr Weight text_q_norm{"text_q_norm.weight"};
  static constexpr Weight text_gates{"text_gates.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight text_gates_bias{"text_gates.bias", HEDDLE_USE_VECTOR,
                                          HEDDLE_PORT_OPTIONAL};
  static constexpr Weight text_proj{"text_proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight text_proj_bias{"text_proj.bias"};
  static constexpr Output<Tensor> out{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr auto ports = heddle::ports(
      hidden, mod, text_kv, cos, sin, guide_weights, heads, eps, is_split, q, q_bias, k, k_bias, v,
      v_bias, q_norm, k_norm, gates, gates_bias, proj, proj_bias, text_q, text_q_bias, text_q_norm,
      text_gates, text_gates_bias, text_proj, text_proj_bias, out);
  static void execute(Context& ctx);
};

// The second part of a layer, of one stream: it looks at the other one. hidden (B, L, D), other
// (B, M, E) -> hidden. mod (1, 1, 5 D), other_mod (1, 1, 5 E) of Ltx2CrossModulation, of whose
// pieces `first` (0: the video looks at the sound, 2: the sound at the video) and the one behind
// count. cos, sin (L, I / 2) of hidden's tokens, other_cos, other_sin (M, I / 2) of the other's. A
// group of devices may have some of the tokens of either each.
struct Ltx2Cross {
  static constexpr Info info{"ltx2.cross",  2,  "LTX 2 attention between streams",
                             "blocks/ltx2", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> other{"other", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> mod{"mod"};
  static constexpr Input<Tensor> other_mod{"other_mod"};
  static constexpr Input<Tensor> cos{"cos"};
  static constexpr Input<Tensor> sin{"sin"};
  static constexpr Input<Tensor> other_cos{"other_cos"};
  static constexpr Input<Tensor> other_sin{"other_sin"};
  static constexpr Input<std::int64_t> first{"first", Widget{}};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 32}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Input<bool> is_split{"is_split", Widget{.number = 1}};
  static constexpr Weight q{"q.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight q_bias{"q.bias", HEDDLE_USE_BIAS};
  static constexpr Weight k{"k.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight k_bias{"k.bias", HEDDLE_USE_BIAS};
  static constexpr Weight v{"v.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight v_bias{"v.bias", HEDDLE_USE_BIAS};
  static constexpr Weight q_norm{"q_norm.weight"};
  static constexpr Weight k_norm{"k_norm.weight"};
  static constexpr Weight gates{"gates.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight gates_bias{"gates.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias", HEDDLE_USE_BIAS};
  static constexpr Output<Tensor> out{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr auto ports = heddle::ports(
      hidden, other, mod, other_mod, cos, sin, other_cos, other_sin, first, heads, eps, is_split, q,
      q_bias, k, k_bias, v, v_bias, q_norm, k_norm, gates, gates_bias, proj, proj_bias, out);
  static void execute(Context& ctx);
};

// The end of a layer, of one stream: hidden (B, L, D) -> the same. mod as of Ltx2Attend. Divided as
// that is.
struct Ltx2Mlp {
  static constexpr Info info{"ltx2.mlp",    2,  "LTX 2 MLP of a stream",
                             "blocks/ltx2", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> mod{"mod"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight up{"up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"up.bias", HEDDLE_USE_BIAS, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight down{"down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"down.bias", HEDDLE_USE_BIAS, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr auto ports = heddle::ports(hidden, mod, eps, up, up_bias, down, down_bias, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
