// plugins/denoisers/minimax_blocks.h - the block types of MiniMax H3: one transformer over one
// sequence of text, pictures and sound that are shown, the sound that is made, and the video.
// Source of the architecture: MiniMaxH3Transformer3DModel of diffusers, by the publishers of the
// model; of the table of times, what published files with less weights hold. Shapes: B batch, T
// tokens of text, R and S tokens of pictures and of sound that are shown, U = 2 L tokens of the
// sound, one loudspeaker's after the other's, V tokens of the video, frame by frame, P = T + R + S
// + U + V of all in this order; D width, H heads of d, M width of the gated MLP, E width of what
// times are made to, N steps. Norms have a root mean square and no mean. Hidden states are f32
// between blocks; only operands of matrix products are in the compute type. Blocks are pure and
// have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::denoisers {

// level (N), noise in [0, 1] -> vector (N, 2, E): of these, then of the smaller of each and
// `pinned`, that of what is shown. The model reads times, 1 - level. `table` (G, E) stands in the
// place of the network: rows at times i / (G - 1), read between them along straight lines.
struct MinimaxVector {
  static constexpr Info info{"minimax.vector", 1,  "MiniMax H3 timestep",
                             "blocks/minimax", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> level{"level"};
  static constexpr Input<double> pinned{"pinned", Widget{}};
  static constexpr Input<double> max_period{"max_period", Widget{.number = 10000}};
  static constexpr Weight time_in{"time.in.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight time_in_bias{"time.in.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight time_out{"time.out.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight time_out_bias{"time.out.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight table{"table", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"vector"};
  static constexpr auto ports = heddle::ports(level, pinned, max_period, time_in, time_in_bias,
                                              time_out, time_out_bias, table, out);
  static void execute(Context& ctx);
};

// vector (N, 2, E) -> mod (N, rows, k D) of its first rows. k is 6: shift, factor and gate of the
// attention, then those of the MLP; or 2: shift and factor. A factor is a norm's weight times
// 1 + scale; norms (k D / 3 or D) are these weights.
struct MinimaxModulation {
  static constexpr Info info{"minimax.modulation", 1,  "MiniMax H3 modulation",
                             "blocks/minimax",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> vector{"vector"};
  static constexpr Input<std::int64_t> rows{"rows", Widget{.number = 1}};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Weight norms{"norms.weight"};
  static constexpr Output<Tensor> out{"mod"};
  static constexpr auto ports = heddle::ports(vector, rows, weight, bias, norms, out);
  static void execute(Context& ctx);
};

// context (1|B, T, W) -> txt (1|B, T, D).
struct MinimaxTextIn {
  static constexpr Info info{"minimax.text_in", 1,  "MiniMax H3 text input",
                             "blocks/minimax",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> context{"context"};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"txt"};
  static constexpr auto ports = heddle::ports(context, weight, bias, out);
  static void execute(Context& ctx);
};

// A layer of the text alone, which turns nothing: txt (1|B, T, D) -> the same. norms (2 D): of the
// attention, then of the MLP.
struct MinimaxTextLayer {
  static constexpr Info info{"minimax.text_layer", 1,  "MiniMax H3 text layer",
                             "blocks/minimax",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norms{"norms.weight"};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight q_norm{"q_norm.weight"};
  static constexpr Weight k_norm{"k_norm.weight"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up{"mlp.up.weight", HEDDLE_USE_LINEAR};  // gate, then up: (2 M, D)
  static constexpr Weight down{"mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, eps, norms, qkv, q_norm, k_norm, proj, up, down, out);
  static void execute(Context& ctx);
};

// x (B, C, F, H, W) -> (B, V, D). A token is 2 x 2 places of a frame, channel by channel.
struct MinimaxVideoIn {
  static constexpr Info info{"minimax.video_in", 1,  "MiniMax H3 video",
                             "blocks/minimax",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(x, weight, bias, out);
  static void execute(Context& ctx);
};

// audio (B, C, 2, L) -> (B, U, D).
struct MinimaxSoundIn {
  static constexpr Info info{"minimax.sound_in", 1,  "MiniMax H3 sound",
                             "blocks/minimax",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> audio{"audio"};
  static constexpr Input<Tensor> carry{"carry"};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(audio, carry, weight, bias, out);
  static void execute(Context& ctx);
};

// Tokens that are shown, rows (1|B, R, K) -> (1|B, R, D). Nothing is shown: (1, 0, D).
struct MinimaxShownIn {
  static constexpr Info info{"minimax.shown_in", 1,  "MiniMax H3 references",
                             "blocks/minimax",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> rows{"rows", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(rows, weight, bias, out);
  static void execute(Context& ctx);
};

// All tokens: hidden (B, P, D), the text in its last norm.
struct MinimaxJoin {
  static constexpr Info info{"minimax.join",   1,  "MiniMax H3 sequence",
                             "blocks/minimax", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> txt{"txt"};
  static constexpr Input<Tensor> references{"references"};
  static constexpr Input<Tensor> sound_references{"sound_references"};
  static constexpr Input<Tensor> sound{"sound"};
  static constexpr Input<Tensor> video{"video"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(txt, references, sound_references, sound, video, eps, norm, out);
  static void execute(Context& ctx);
};

// The rotary table of the sequence: cos, sin (P, 3 n) f32. Of a head the first 2 n elements of
// each of three axes turn, by frequencies theta^(-i / n), time before rows before columns; the rest
// does not. Times: of the text its number, of what is made and shown T + media_start (1) + its own.
// A frame of the latent lasts 5 / 3 of 1, 4, 4, 4, 4 pictures in turn, a token of sound 1. A place
// along a side of h is 32 (1/2 + (i - h / 2) / root of the area), i counted by twos; sound is in
// row 0, the left one in the first column, the right one in the last. What is shown brings its own
// places (R, 3), (S, 3). Reads shapes, but for these.
struct MinimaxRope {
  static constexpr Info info{"minimax.rope",   2,  "MiniMax H3 rotary table",
                             "blocks/minimax", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> audio{"audio", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> context{"context", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> positions{"positions", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> sound_positions{"sound_positions", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> media_start{"media_start", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> frequencies{"frequencies", Widget{.number = 16}};
  static constexpr Input<double> theta{"theta", Widget{.number = 10000}};
  static constexpr Output<Tensor> cos{"cos"};
  static constexpr Output<Tensor> sin{"sin"};
  static constexpr auto ports = heddle::ports(x, audio, context, positions, sound_positions,
                                              media_start, frequencies, theta, cos, sin);
  static void execute(Context& ctx);
};

// Where the tokens of the video lie for sparse attention (minimax_cubes.h), and the tiles of those
// before it: order (64 N) and places (V) i32, weights (N, 1, 64) and pools (M, P - V) f32. Each of
// the text, the references, of sound too, and the sound that is made begins a tile of its own;
// reference_pools (m, R), sound_pools (n, S) tell those of several references. What it gives is
// read in the place of what it is given, which nobody gives: a model without this block is dense.
struct MinimaxCubes {
  static constexpr Info info{"minimax.cubes",  1,  "MiniMax H3 cubes of the video",
                             "blocks/minimax", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> audio{"audio", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> context{"context", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> references{"references", HEDDLE_PORT_SHAPE | HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> sound_references{"sound_references",
                                                  HEDDLE_PORT_SHAPE | HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> reference_pools{"reference_pools", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> sound_pools{"sound_reference_pools", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> order{"order", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> places{"places", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> weights{"weights", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> pools{"pools", HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> order_out{"order"};
  static constexpr Output<Tensor> places_out{"places"};
  static constexpr Output<Tensor> weights_out{"weights"};
  static constexpr Output<Tensor> pools_out{"pools"};
  static constexpr auto ports =
      heddle::ports(x, audio, context, references, sound_references, reference_pools, sound_pools,
                    order, places, weights, pools, order_out, places_out, weights_out, pools_out);
  static void execute(Context& ctx);
};

// A layer: hidden (B, P, D) -> the same. video_mod and sound_mod (1, 2, 6 D): of what is made, then
// of what is shown; text_mod (1, 1, 6 D). Tokens of the text of which picture_rows (T, 1) is 1, not
// 0, are modulated as the video is. Of a head the pairs (i, n + i) of the first 2 n elements turn,
// n = 3 `frequencies`. A group of devices may have some of the tokens each, or some of the heads
// and of the MLP. With the tables of MinimaxCubes, and from `least` tokens on, the attention is
// that of minimax_cubes.h, which keeps `share` of the cubes; `gate`, a matrix, tells how much of
// its coarse branch is added.
struct MinimaxLayer {
  static constexpr Info info{"minimax.layer",  2,  "MiniMax H3 layer",
                             "blocks/minimax", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> video_mod{"video_mod"};
  static constexpr Input<Tensor> text_mod{"text_mod"};
  static constexpr Input<Tensor> sound_mod{"sound_mod"};
  static constexpr Input<Tensor> cos{"cos"};
  static constexpr Input<Tensor> sin{"sin"};
  static constexpr Input<Tensor> picture_rows{"picture_rows", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> context{"context", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> audio{"audio", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> references{"references", HEDDLE_PORT_SHAPE | HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> sound_references{"sound_references",
                                                  HEDDLE_PORT_SHAPE | HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> order{"order", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> places{"places", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> weights{"weights", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> pools{"pools", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<double> share{"share", Widget{.number = 0.1}};
  static constexpr Input<std::int64_t> least{"least", Widget{}};
  static constexpr Input<std::int64_t> frequencies{"frequencies", Widget{.number = 16}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight gate{"gate.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight qk{"qk.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight v{"v.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight q_norm{"q_norm.weight"};
  static constexpr Weight k_norm{"k_norm.weight"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up{"mlp.up.weight", HEDDLE_USE_LINEAR};  // gate, then up: (2 M, D)
  static constexpr Weight down{"mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Output<Tensor> out{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr auto ports =
      heddle::ports(hidden, video_mod, text_mod, sound_mod, cos, sin, picture_rows, context, audio,
                    references, sound_references, order, places, weights, pools, share, least,
                    frequencies, eps, gate, qk, v, q_norm, k_norm, proj, up, down, out);
  static void execute(Context& ctx);
};

// hidden (B, P, D), mod (1, 2, 2 D), of which the first row counts, x for its shape and type -> out
// (B, C, F, H, W): noise - clean. heads (1, n): the matrix has rows for n heads, one after another,
// and what they make is added up with these weights.
struct MinimaxVideoFinal {
  static constexpr Info info{"minimax.video_final", 2,  "MiniMax H3 output of the video",
                             "blocks/minimax",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> mod{"mod"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> heads{"heads", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"out"};
  static constexpr auto ports = heddle::ports(hidden, mod, x, heads, eps, weight, bias, out);
  static void execute(Context& ctx);
};

// Of the sound kept (1) times audio plus gain (1) times the same: audio_out (B, C, 2, L). x tells
// how many tokens are the video's.
struct MinimaxSoundFinal {
  static constexpr Info info{"minimax.sound_final", 2,  "MiniMax H3 output of the sound",
                             "blocks/minimax",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> mod{"mod"};
  static constexpr Input<Tensor> kept{"kept"};
  static constexpr Input<Tensor> gain{"gain"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> audio{"audio"};
  static constexpr Input<Tensor> heads{"heads", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"audio_out"};
  static constexpr auto ports =
      heddle::ports(hidden, mod, kept, gain, x, audio, heads, eps, weight, bias, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
