// plugins/denoisers/zimage_blocks.h - the block types of Z-Image and Lumina 2, a single stream of
// text and picture tokens. Sources of the architectures: ZImageTransformer2DModel and
// Lumina2Transformer2DModel of diffusers, by the publishers of the models. Shapes: B batch, T
// tokens of text and S of the picture, in Z-Image each filled up to a `multiple` of 32 with a
// learned token, L = T + S, D width, H heads of d, K heads of keys and values, N steps. Text stands
// first. Hidden states are f32 between blocks. Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::denoisers {

// timestep (N), a noise level in [0, 1] -> vector (N, 1, Dt): of 1 - level, as the model counts.
struct ZImageVector {
  static constexpr Info info{"zimage.vector", 1,  "Z-Image timestep",
                             "blocks/zimage", "", HEDDLE_NODE_BLOCK};
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

// The rotary table of the joint sequence: token i of the text, and of what fills it up, at (first +
// i, 0, 0), those of the picture at (first + T, row, column), what fills it up at (0, 0, 0). cos,
// sin: (L, d/2) f32. Reads shapes only.
struct ZImageRope {
  static constexpr Info info{"zimage.rope",   1,  "Z-Image rotary table",
                             "blocks/zimage", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE, "the latent (B, C, H, W)"};
  static constexpr Input<Tensor> context{"context", HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> axis_0{"axis_0", Widget{.number = 32}};
  static constexpr Input<std::int64_t> axis_1{"axis_1", Widget{.number = 48}};
  static constexpr Input<std::int64_t> axis_2{"axis_2", Widget{.number = 48}};
  static constexpr Input<double> theta{"theta", Widget{.number = 256}};
  static constexpr Input<std::int64_t> first{"first", Widget{.number = 1}};
  static constexpr Input<std::int64_t> multiple{"multiple", Widget{.number = 32}};
  static constexpr Output<Tensor> cos{"cos"};
  static constexpr Output<Tensor> sin{"sin"};
  static constexpr auto ports =
      heddle::ports(x, context, axis_0, axis_1, axis_2, theta, first, multiple, cos, sin);
  static void execute(Context& ctx);
};

// context (1|B, t, D_text) -> txt (1|B, T, D).
struct ZImageTextIn {
  static constexpr Info info{"zimage.text_in", 1,  "Z-Image text input",
                             "blocks/zimage",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> context{"context"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Input<std::int64_t> multiple{"multiple", Widget{.number = 32}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Weight filling{"filling", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"txt"};
  static constexpr auto ports =
      heddle::ports(context, eps, multiple, norm, weight, bias, filling, out);
  static void execute(Context& ctx);
};

// x (B, C, H, W) -> img (B, S, D). A token is 2x2 pixels, of each all channels.
struct ZImageImageIn {
  static constexpr Info info{"zimage.image_in", 1,  "Z-Image picture input",
                             "blocks/zimage",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<std::int64_t> multiple{"multiple", Widget{.number = 32}};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Weight filling{"filling", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"img"};
  static constexpr auto ports = heddle::ports(x, multiple, weight, bias, filling, out);
  static void execute(Context& ctx);
};

// vector (N, 1, Dt) -> mod (N, 1, 4 D): by what the four norms of a layer multiply, before and
// behind the attention, before and behind the MLP. The norms' weights are (1 + scale) times, those
// behind tanh(gate) times the model's own.
struct ZImageModulation {
  static constexpr Info info{"zimage.modulation", 1,  "Z-Image modulation",
                             "blocks/zimage",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> vector{"vector"};
  static constexpr Input<bool> activates{"activates", Widget{}, "SiLU(vector) is read"};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Weight norms{"norms.weight"};  // of the four, one after another
  static constexpr Output<Tensor> out{"mod"};
  static constexpr auto ports = heddle::ports(vector, activates, weight, bias, norms, out);
  static void execute(Context& ctx);
};

// hidden (B, S, D) -> the same. Its tokens are the first rows of cos and sin, or
// the last. mod (1, 1, 4 D), or without one, in its place, `norms` (4 D). A layer of tokens that do
// not change from step to step is given `point`, which it does not read: else it would be asked for
// all steps at once. A group of devices may have some of the tokens each.
struct ZImageLayer {
  static constexpr Info info{"zimage.layer",  2,  "Z-Image layer",
                             "blocks/zimage", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> mod{"mod", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> point{"point", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> cos{"cos"};
  static constexpr Input<Tensor> sin{"sin"};
  static constexpr Input<bool> is_last{"is_last", Widget{.number = 0}};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 30}};
  static constexpr Input<std::int64_t> kv_heads{"kv_heads", Widget{.number = 30}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norms{"norms.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight q_norm{"q_norm.weight"};
  static constexpr Weight k_norm{"k_norm.weight"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up{"mlp.up.weight", HEDDLE_USE_LINEAR};  // gate, then up: (2F, D)
  static constexpr Weight down{"mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Output<Tensor> out{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr auto ports =
      heddle::ports(hidden, mod, point, cos, sin, is_last, heads, kv_heads, eps, norms, qkv, q_norm,
                    k_norm, proj, up, down, out);
  static void execute(Context& ctx);
};

// txt (1|B, T, D), img (B, S, D) -> hidden (B, L, D).
struct ZImageJoin {
  static constexpr Info info{"zimage.join",   1,  "Z-Image join",
                             "blocks/zimage", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> txt{"txt"};
  static constexpr Input<Tensor> img{"img"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(txt, img, out);
  static void execute(Context& ctx);
};

// vector (N, 1, Dt) -> mod (N, 1, D): the last scale.
struct ZImageFinalModulation {
  static constexpr Info info{"zimage.final_modulation", 1,  "Z-Image last modulation",
                             "blocks/zimage",           "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> vector{"vector"};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"mod"};
  static constexpr auto ports = heddle::ports(vector, weight, bias, out);
  static void execute(Context& ctx);
};

// hidden (B, L, D), x (B, C, H, W) -> out (B, C, H, W): the velocity, noise - image. The model
// gives its opposite.
struct ZImageFinal {
  static constexpr Info info{"zimage.final",  1,  "Z-Image output",
                             "blocks/zimage", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> mod{"mod"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Input<std::int64_t> multiple{"multiple", Widget{.number = 32}};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"out"};
  static constexpr auto ports = heddle::ports(hidden, mod, x, eps, multiple, weight, bias, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
