// plugins/denoisers/ltxv_blocks.h - the block types of LTX-Video that Wan's (wan_blocks.h) do not
// serve for: a transformer over the tokens of all frames that looks at the text in every layer.
// Source of the architecture: LTXVideoTransformer3DModel of diffusers, by the publishers of the
// model. Shapes: B batch, C channels of the latent, F frames, T tokens of text, L tokens of the
// video, one for each place of the latent, frame by frame, D width, H heads of d, M width of the
// MLP, N steps. Hidden states are f32 between blocks; only operands of matrix products are in the
// compute type. Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::denoisers {

// timestep (N), a noise level in [0, 1] -> vector (N, 1, D). With frame_noise (F), what each frame
// of the latent has of that noise, (N, F, D).
struct LtxvVector {
  static constexpr Info info{"ltxv.vector", 1,  "LTX-Video timestep",
                             "blocks/ltxv", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> timestep{"timestep"};
  static constexpr Input<Tensor> frame_noise{"frame_noise", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<double> time_scale{"time_scale", Widget{.number = 1000}};
  static constexpr Input<double> max_period{"max_period", Widget{.number = 10000}};
  static constexpr Weight time_in{"time.in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight time_in_bias{"time.in.bias"};
  static constexpr Weight time_out{"time.out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight time_out_bias{"time.out.bias"};
  static constexpr Output<Tensor> out{"vector"};
  static constexpr auto ports = heddle::ports(timestep, frame_noise, time_scale, max_period,
                                              time_in, time_in_bias, time_out, time_out_bias, out);
  static void execute(Context& ctx);
};

// shared (N, F', k D or D, which then counts for each of the k) plus table (k, D) -> mod (N, F',
// k D), F' 1 or F. Of a layer (k = 6) of the attention shift, 1 + scale and gate, then those of the
// MLP, of LTX 2.3 (k = 9) then those of the attention to the text; at the end (k = 2) shift and
// scale.
struct LtxvModulation {
  static constexpr Info info{"ltxv.modulation", 1,  "LTX-Video modulation",
                             "blocks/ltxv",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> shared{"shared"};
  static constexpr Weight table{"table"};
  static constexpr Output<Tensor> out{"mod"};
  static constexpr auto ports = heddle::ports(shared, table, out);
  static void execute(Context& ctx);
};

// x (B, C, F, H, W) -> hidden (B, L, D). token_rows (T) i32: of the latent's places those that are
// tokens, and L is T then. Of LTX 2.5, `marker` (1, D) is added to the tokens of the first frame,
// which stands for a single picture.
struct LtxvLatentIn {
  static constexpr Info info{"ltxv.latent_in", 2,  "LTX-Video latent",
                             "blocks/ltxv",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<Tensor> token_rows{"token_rows", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Weight marker{"marker", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(x, token_rows, weight, bias, marker, out);
  static void execute(Context& ctx);
};

// The rotary table of the latent's tokens: cos, sin (L, D / 2) f32. A token is at (t, y, x): its
// time in seconds, row and column in pixels, as parts p of 20 seconds and 2048 pixels. Each of
// n = D / 6 frequencies pi / 2 * theta^(i / (n - 1)) turns three pairs by (2 p - 1) times itself,
// in this order; the pairs that are left stand before all others and do not turn. frame_time (1):
// seconds between two pictures. A frame of the latent begins `frame_pictures` pictures after the
// one before; where `causal` the first one is a single picture.
struct LtxvRope {
  static constexpr Info info{"ltxv.rope",   2,  "LTX-Video rotary table",
                             "blocks/ltxv", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE, "the latent (B, C, F, H, W)"};
  static constexpr Input<Tensor> frame_time{"frame_time"};
  static constexpr Input<Tensor> guide_frames{"guide_frames", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> token_rows{"token_rows", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> width{"width", Widget{.number = 2048}};
  static constexpr Input<bool> causal{"causal", Widget{}};
  static constexpr Input<double> frame_pictures{"frame_pictures", Widget{.number = 8}};
  static constexpr Input<double> side_pixels{"side_pixels", Widget{.number = 32}};
  static constexpr Input<double> most_time{"most_time", Widget{.number = 20}};
  static constexpr Input<double> most_height{"most_height", Widget{.number = 2048}};
  static constexpr Input<double> most_width{"most_width", Widget{.number = 2048}};
  static constexpr Input<double> theta{"theta", Widget{.number = 10000}};
  static constexpr Output<Tensor> cos{"cos"};
  static constexpr Output<Tensor> sin{"sin"};
  static constexpr auto ports =
      heddle::ports(x, frame_time, guide_frames, token_rows, width, causal, frame_pictures,
                    side_pixels, most_time, most_height, most_width, theta, cos, sin);
  static void execute(Context& ctx);
};

// A layer: hidden (B, L, D) -> the same. mod (1, F', 6 D) of LtxvModulation, text_kv (B, T, 2 D) of
// WanKeys.
// Queries and keys are normalised and turned over all heads together. guide_weights (G) f32: of
// GuidedAttention (ltxv_guides.h).
struct LtxvLayer {
  static constexpr Info info{"ltxv.layer",  3,  "LTX-Video layer",
                             "blocks/ltxv", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> mod{"mod"};
  static constexpr Input<Tensor> text_kv{"text_kv"};
  static constexpr Input<Tensor> cos{"cos"};
  static constexpr Input<Tensor> sin{"sin"};
  static constexpr Input<Tensor> guide_weights{"guide_weights", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 32}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Input<double> head_eps{"head_eps", Widget{.number = 1e-5}};
  static constexpr Weight qk{"qk.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight qk_bias{"qk.bias", HEDDLE_USE_BIAS};
  static constexpr Weight v{"v.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight v_bias{"v.bias", HEDDLE_USE_BIAS};
  static constexpr Weight q_norm{"q_norm.weight"};
  static constexpr Weight k_norm{"k_norm.weight"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias", HEDDLE_USE_BIAS};
  static constexpr Weight text_q{"text_q.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight text_q_bias{"text_q.bias", HEDDLE_USE_BIAS};
  static constexpr Weight text_q_norm{"text_q_norm.weight"};
  static constexpr Weight text_proj{"text_proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight text_proj_bias{"text_proj.bias"};
  static constexpr Weight up{"mlp.up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"mlp.up.bias", HEDDLE_USE_BIAS};
  static constexpr Weight down{"mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"mlp.down.bias", HEDDLE_USE_BIAS};
  static constexpr Output<Tensor> out{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr auto ports =
      heddle::ports(hidden, mod, text_kv, cos, sin, guide_weights, heads, eps, head_eps, qk,
                    qk_bias, v, v_bias, q_norm, k_norm, proj, proj_bias, text_q, text_q_bias,
                    text_q_norm, text_proj, text_proj_bias, up, up_bias, down, down_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, L, D), mod (1, F', 2 D) of LtxvModulation, x the latent, for its shape and type -> out
// (B, C, F, H, W). token_places (F H W) i32: which token each place is, or L: none, and it is 0.
struct LtxvFinal {
  static constexpr Info info{"ltxv.final",  2,  "LTX-Video output",
                             "blocks/ltxv", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> mod{"mod"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> token_places{"token_places", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"out"};
  static constexpr auto ports = heddle::ports(hidden, mod, x, token_places, eps, weight, bias, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
