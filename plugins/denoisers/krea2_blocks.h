// plugins/denoisers/krea2_blocks.h - the block types of Krea 2, a single stream of text and picture
// tokens. Source of the architecture: Krea2Transformer2DModel of diffusers, by the publishers of
// the model. Shapes: B batch, T tokens of text, of each the states of n layers of the text encoder
// of width W, S tokens of the picture, L = T + S, D width, H heads of d, K heads of keys and
// values, F width of the gated MLP, N steps. Text stands first. All norms multiply by 1 + weight.
// Hidden states are f32 between blocks; only operands of matrix products are in the compute type.
// Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::denoisers {

// timestep (N), a noise level in [0, 1] -> vector (N, 1, D).
struct Krea2Vector {
  static constexpr Info info{"krea2.vector", 1,  "Krea 2 timestep",
                             "blocks/krea2", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> timestep{"timestep"};
  static constexpr Input<double> time_scale{"time_scale", Widget{.number = 1000}};
  static constexpr Input<double> max_period{"max_period", Widget{.number = 10000}};
  static constexpr Weight time_in{"time.in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight time_in_bias{"time.in.bias"};
  static constexpr Weight time_out{"time.out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight time_out_bias{"time.out.bias"};
  static constexpr Output<Tensor> out{"vector"};
  static constexpr auto ports = heddle::ports(timestep, time_scale, max_period, time_in,
                                              time_in_bias, time_out, time_out_bias, out);
  static void execute(Context& ctx);
};

// vector (N, 1, D) -> shared (N, 1, 6 D): what all layers are modulated by.
struct Krea2SharedModulation {
  static constexpr Info info{
      "krea2.shared_modulation", 1, "Krea 2 shared modulation", "blocks/krea2", "",
      HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> vector{"vector"};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"shared"};
  static constexpr auto ports = heddle::ports(vector, weight, bias, out);
  static void execute(Context& ctx);
};

// shared (N, 1, k D) -> mod (N, 1, k D): with `table` (k D) added, of each norm (weight, shift),
// and in layers a gate behind it; norms (D) or (2 D) are the model's own weights of these. With
// `repeats` shared is (N, 1, D), and counts for every one of the k.
struct Krea2Modulation {
  static constexpr Info info{"krea2.modulation", 1,  "Krea 2 modulation",
                             "blocks/krea2",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> shared{"shared"};
  static constexpr Input<bool> repeats{"repeats", Widget{.number = 0}};
  static constexpr Weight table{"table"};
  static constexpr Weight norms{"norms.weight"};
  static constexpr Output<Tensor> out{"mod"};
  static constexpr auto ports = heddle::ports(shared, repeats, table, norms, out);
  static void execute(Context& ctx);
};

// A layer of the text, which turns nothing: hidden (B, T, W) -> the same. norms (2 W): of the
// attention, then of the MLP. With `states` n > 1, hidden is (B, T, n W): n states of each token,
// which see only each other.
struct Krea2TextLayer {
  static constexpr Info info{"krea2.text_layer", 1,  "Krea 2 text layer",
                             "blocks/krea2",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> states{"states", Widget{.number = 1}};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 20}};
  static constexpr Input<std::int64_t> kv_heads{"kv_heads", Widget{.number = 20}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norms{"norms.weight"};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight gate{"gate.weight", HEDDLE_USE_LINEAR};  // sigmoid, on the attention
  static constexpr Weight q_norm{"q_norm.weight"};
  static constexpr Weight k_norm{"k_norm.weight"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up{"mlp.up.weight", HEDDLE_USE_LINEAR};  // gate, then up: (2F, W)
  static constexpr Weight down{"mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, states, heads, kv_heads, eps, norms, qkv,
                                              gate, q_norm, k_norm, proj, up, down, out);
  static void execute(Context& ctx);
};

// A layer of the joint sequence: hidden (B, L, D) -> the same. mod (1, 1, 6 D). A group of devices
// may have some of the tokens each, or some of the heads and of the MLP.
struct Krea2Layer {
  static constexpr Info info{"krea2.layer",  2,  "Krea 2 layer",
                             "blocks/krea2", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> mod{"mod"};
  static constexpr Input<Tensor> cos{"cos"};
  static constexpr Input<Tensor> sin{"sin"};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 48}};
  static constexpr Input<std::int64_t> kv_heads{"kv_heads", Widget{.number = 12}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight gate{"gate.weight", HEDDLE_USE_LINEAR};  // sigmoid, on the attention
  static constexpr Weight q_norm{"q_norm.weight"};
  static constexpr Weight k_norm{"k_norm.weight"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up{"mlp.up.weight", HEDDLE_USE_LINEAR};  // gate, then up: (2F, D)
  static constexpr Weight down{"mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Output<Tensor> out{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr auto ports = heddle::ports(hidden, mod, cos, sin, heads, kv_heads, eps, qkv,
                                              gate, q_norm, k_norm, proj, up, down, out);
  static void execute(Context& ctx);
};

// hidden (B, T, n W) -> txt (B, T, W): the n states of each token, weighed.
struct Krea2TextMix {
  static constexpr Info info{"krea2.text_mix", 1,  "Krea 2 mix of text states",
                             "blocks/krea2",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};  // (1, n)
  static constexpr Output<Tensor> out{"txt"};
  static constexpr auto ports = heddle::ports(hidden, weight, out);
  static void execute(Context& ctx);
};

// txt (B, T, W) -> (B, T, D).
struct Krea2TextIn {
  static constexpr Info info{"krea2.text_in", 1,  "Krea 2 text input",
                             "blocks/krea2",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight in{"in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight in_bias{"in.bias"};
  static constexpr Weight last{"out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight last_bias{"out.bias"};
  static constexpr Output<Tensor> out{"txt"};
  static constexpr auto ports = heddle::ports(hidden, eps, norm, in, in_bias, last, last_bias, out);
  static void execute(Context& ctx);
};

// x (B, C, H, W) -> img (B, S, D). A token is 2x2 pixels of each channel, one after another.
struct Krea2ImageIn {
  static constexpr Info info{"krea2.image_in", 1,  "Krea 2 picture input",
                             "blocks/krea2",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"img"};
  static constexpr auto ports = heddle::ports(x, weight, bias, out);
  static void execute(Context& ctx);
};

// The rotary table of the joint sequence: tokens of the text at (0, 0, 0), those of the picture at
// (0, row, column). cos, sin: (L, d/2) f32. Reads shapes only.
struct Krea2Rope {
  static constexpr Info info{"krea2.rope",   1,  "Krea 2 rotary table",
                             "blocks/krea2", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE, "the latent (B, C, H, W)"};
  static constexpr Input<Tensor> context{"context", HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> axis_0{"axis_0", Widget{.number = 32}};
  static constexpr Input<std::int64_t> axis_1{"axis_1", Widget{.number = 48}};
  static constexpr Input<std::int64_t> axis_2{"axis_2", Widget{.number = 48}};
  static constexpr Input<double> theta{"theta", Widget{.number = 1000}};
  static constexpr Output<Tensor> cos{"cos"};
  static constexpr Output<Tensor> sin{"sin"};
  static constexpr auto ports = heddle::ports(x, context, axis_0, axis_1, axis_2, theta, cos, sin);
  static void execute(Context& ctx);
};

// hidden (B, L, D), mod (1, 1, 2 D), x (B, C, H, W) -> out (B, C, H, W): the velocity, noise -
// image.
struct Krea2Final {
  static constexpr Info info{"krea2.final",  1,  "Krea 2 output",
                             "blocks/krea2", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> mod{"mod"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"out"};
  static constexpr auto ports = heddle::ports(hidden, mod, x, eps, weight, bias, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
