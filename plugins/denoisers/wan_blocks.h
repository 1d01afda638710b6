// plugins/denoisers/wan_blocks.h - the block types of Wan 2.1 and 2.2, a transformer over the
// tokens of all frames that looks at the text in every layer. Source of the architecture:
// WanTransformer3DModel of diffusers, by the publishers of the model. Shapes: B batch, C channels
// of the latent, F frames, T tokens of text of width W, V tokens of a picture's vision model of
// width U, L tokens of the video, 2x2 pixels of one frame each, frame by frame, D width, H heads of
// d, M width of the MLP, N steps. Hidden states are f32 between blocks; only operands of matrix
// products are in the compute type. Blocks are pure and have no instance; any thread.
#pragma once

#include <functional>
#include <utility>

#include <heddle/node.hpp>

#include "patches.h"

namespace heddle::denoisers {

// timestep (N), a noise level in [0, 1000] -> vector (N, 1, D). With frame_noise (F), what each
// frame has of the level -> (N, F, D). With `clean` a row of the level 0 behind it -> (N, 2, D).
struct WanVector {
  static constexpr Info info{"wan.vector", 1, "Wan timestep", "blocks/wan", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> timestep{"timestep"};
  static constexpr Input<Tensor> frame_noise{"frame_noise", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<double> time_scale{"time_scale", Widget{.number = 1}};
  static constexpr Input<double> max_period{"max_period", Widget{.number = 10000}};
  static constexpr Input<bool> clean{"clean", Widget{.number = 0}};
  static constexpr Weight time_in{"time.in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight time_in_bias{"time.in.bias"};
  static constexpr Weight time_out{"time.out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight time_out_bias{"time.out.bias"};
  static constexpr Output<Tensor> out{"vector"};
  static constexpr auto ports = heddle::ports(timestep, frame_noise, time_scale, max_period, clean,
                                              time_in, time_in_bias, time_out, time_out_bias, out);
  static void execute(Context& ctx);
};

// vector (N, 1, D) -> shared (N, 1, 6 D): what all layers are modulated by; of F frames (N, F, 6
// D).
struct WanSharedModulation {
  static constexpr Info info{"wan.shared_modulation", 1, "Wan shared modulation", "blocks/wan", "",
                             HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> vector{"vector"};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"shared"};
  static constexpr auto ports = heddle::ports(vector, weight, bias, out);
  static void execute(Context& ctx);
};

// shared (N, 1, k D or D, which then counts for each of the k) plus table (k D) -> mod (N, 1, k D):
// of a layer shift, scale and gate of the attention, then of the MLP; at the end shift and scale.
// Of F frames (N, F, k D).
struct WanModulation {
  static constexpr Info info{"wan.modulation", 1,  "Wan modulation",
                             "blocks/wan",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> shared{"shared"};
  static constexpr Weight table{"table"};
  static constexpr Output<Tensor> out{"mod"};
  static constexpr auto ports = heddle::ports(shared, table, out);
  static void execute(Context& ctx);
};

// context (B|1, T, W) -> txt (B|1, T, D); without it txt (1, 0, D).
struct WanTextIn {
  static constexpr Info info{"wan.text_in", 1, "Wan text", "blocks/wan", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> context{"context", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight in{"in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight in_bias{"in.bias"};
  static constexpr Weight last{"out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight last_bias{"out.bias"};
  static constexpr Output<Tensor> out{"txt"};
  static constexpr auto ports = heddle::ports(context, in, in_bias, last, last_bias, out);
  static void execute(Context& ctx);
};

// vision (B|1, V, U), the states of the vision model -> img (B|1, V, D). With `positions` (1, V,
// U), which models of a first and a last frame have, it is (B|1, V', U), of both frames one after
// the other, of which at most V are read.
struct WanVisionIn {
  static constexpr Info info{"wan.vision_in", 1, "Wan vision", "blocks/wan", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> vision{"vision", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight positions{"positions", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight norm1_bias{"norm1.bias"};
  static constexpr Weight in{"in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight in_bias{"in.bias"};
  static constexpr Weight last{"out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight last_bias{"out.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight norm2_bias{"norm2.bias"};
  static constexpr Output<Tensor> out{"img"};
  static constexpr auto ports = heddle::ports(vision, eps, positions, norm1, norm1_bias, in,
                                              in_bias, last, last_bias, norm2, norm2_bias, out);
  static void execute(Context& ctx);
};

// What a layer's queries look at: seen (B|1, T, D) -> kv (B, T, 2 D), keys, then values. x tells B.
struct WanKeys {
  static constexpr Info info{"wan.keys",   1,  "Wan keys and values",
                             "blocks/wan", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> seen{"seen"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight k{"k.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight k_bias{"k.bias"};
  static constexpr Weight v{"v.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight v_bias{"v.bias", HEDDLE_USE_BIAS};
  static constexpr Weight norm{"k_norm.weight"};
  static constexpr Output<Tensor> out{"kv"};
  static constexpr auto ports = heddle::ports(seen, x, eps, k, k_bias, v, v_bias, norm, out);
  static void execute(Context& ctx);
};

// x (B, C, F, H, W), with concat (B|1, C', F, H, W) behind its channels -> hidden (B, L, D):
// squares of `patch` pixels a side are tokens.
struct WanLatentIn {
  static constexpr Info info{"wan.latent_in", 1, "Wan latent", "blocks/wan", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<Tensor> concat{"concat", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> patch{"patch", Widget{.number = kPatch}};
  static constexpr Weight weight{"weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(x, concat, patch, weight, bias, out);
  static void execute(Context& ctx);
};

// The rotary table of the latent's tokens at (frame, row, column). cos, sin: (L, d/2) f32. With
// tokens before them (1|B, R, D), of which R is not 0, they are one frame more.
struct WanRope {
  static constexpr Info info{"wan.rope",   1,  "Wan rotary table",
                             "blocks/wan", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE, "the latent (B, C, F, H, W)"};
  static constexpr Input<Tensor> before{"before", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> axis_0{"axis_0", Widget{.number = 44}};
  static constexpr Input<std::int64_t> axis_1{"axis_1", Widget{.number = 42}};
  static constexpr Input<std::int64_t> axis_2{"axis_2", Widget{.number = 42}};
  static constexpr Input<double> theta{"theta", Widget{.number = 10000}};
  static constexpr Output<Tensor> cos{"cos"};
  static constexpr Output<Tensor> sin{"sin"};
  static constexpr auto ports = heddle::ports(x, before, axis_0, axis_1, axis_2, theta, cos, sin);
  static void execute(Context& ctx);
};

// What these two do, for a block with their ports: with this filter and its bias; the places
// (L, 3) f32 of the tokens of so many frames, and the table of any.
Tensor wan_latent_tokens(Context& ctx, const Tensor& filter, const Tensor& bias);
Tensor wan_grid_places(Context& ctx, const Tensor& latent, std::int64_t frames);
std::pair<Tensor, Tensor> wan_rope_table(Context& ctx, const Tensor& places);

// A layer: hidden (B, L, D) -> the same. mod as of WanModulation; text_kv, vision_kv of WanKeys.
// With a table, mod is what WanSharedModulation makes, and the layer adds its table itself: of many
// frames the sums of all steps and layers would not fit.
struct WanLayer {
  static constexpr Info info{"wan.layer", 1, "Wan layer", "blocks/wan", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> mod{"mod"};
  static constexpr Input<Tensor> text_kv{"text_kv"};
  static constexpr Input<Tensor> vision_kv{"vision_kv", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> cos{"cos"};
  static constexpr Input<Tensor> sin{"sin"};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 40}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight table{"table", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight qk{"qk.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight qk_bias{"qk.bias", HEDDLE_USE_BIAS};
  static constexpr Weight v{"v.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight v_bias{"v.bias", HEDDLE_USE_BIAS};
  static constexpr Weight q_norm{"q_norm.weight"};
  static constexpr Weight k_norm{"k_norm.weight"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias", HEDDLE_USE_BIAS};
  static constexpr Weight norm{"norm.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm_bias{"norm.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
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
      heddle::ports(hidden, mod, text_kv, vision_kv, cos, sin, heads, eps, table, qk, qk_bias, v,
                    v_bias, q_norm, k_norm, proj, proj_bias, norm, norm_bias, text_q, text_q_bias,
                    text_q_norm, text_proj, text_proj_bias, up, up_bias, down, down_bias, out);
  static void execute(Context& ctx);
};

// What a layer's tokens look at besides: keys and values (B, P, 2 D); none where there is nothing.
struct WanKept {
  Tensor kept = {};
  // Above 0: of poses, so many tokens in a frame, of which each frame looks at the one before
  // (wan_pose_blocks.h). 0: of frames before these, which all look at (wan_causal_blocks.h).
  std::int64_t cell = 0;
};
// What a layer's tokens look at behind the text: of their queries, keys, rotated, and values (B, l,
// 3 D) and of hidden (B, l, D) f32, both of this device, the next hidden.
using WanLook = std::function<Tensor(const Tensor& own, const Tensor& hidden)>;
// What the block that runs does of WanLayer, whose ports it has; its tokens' keys, rotated, and
// values (B, l, 2 D) of this device. lead above 0: of the two rows of mod the first is of so many
// tokens.
Tensor run_wan_layer(Context& ctx, const WanKept& besides, std::int64_t lead = 0,
                     const WanLook& look = {});

// hidden (B, L, D), or behind other tokens, x the latent, for its shape and type -> out (B, C, F,
// H, W). `leads`: other tokens are behind those of the video, whose row of mod is the first.
struct WanFinal {
  static constexpr Info info{"wan.final", 1, "Wan output", "blocks/wan", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> mod{"mod"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Input<bool> leads{"leads", Widget{.number = 0}};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"out"};
  static constexpr auto ports = heddle::ports(hidden, mod, x, eps, leads, weight, bias, out);
  static void execute(Context& ctx);
};
// What it does, for a block with its x and eps: of tokens (B, L, D) of the video alone.
Tensor wan_velocity(Context& ctx, const Tensor& mod, const Tensor& hidden, const Tensor& matrix,
                    const Tensor& bias);

}  // namespace heddle::denoisers
