// plugins/denoisers/flux3_blocks.h - the block types that FLUX 3 has besides those that it shares
// with FLUX.1 (flux_blocks.h, whose letters for shapes are used here; R tokens of reference
// pictures). Source of the architecture: Flux3Transformer2DModel of diffusers, by the publisher of
// the model. Text, picture and reference pictures are three kinds of tokens: each goes through
// layers of its own, in which it sees itself alone, before all of them are one sequence. Streams
// are f32 between blocks. Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::denoisers {

// timestep (N) in [0, 1] -> vector (N, 1, D), already through SiLU because every reader would begin
// with it. Without a timestep it is that of what has no noise, the text and reference pictures.
// target_timestep (N), of distilled models: the level that the step goes to.
struct Flux3Vector {
  static constexpr Info info{"flux3.vector", 1,  "FLUX 3 timestep",
                             "blocks/flux3", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> timestep{"timestep", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> target{"target_timestep", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<double> time_scale{"time_scale", Widget{.number = 1000}};
  static constexpr Input<double> max_period{"max_period", Widget{.number = 10000}};
  static constexpr Weight time_in{"time.in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight time_out{"time.out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight target_in{"target.in.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight target_out{"target.out.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"vector"};
  static constexpr auto ports = heddle::ports(timestep, target, time_scale, max_period, time_in,
                                              time_out, target_in, target_out, out);
  static void execute(Context& ctx);
};

// Rotary tables on four axes: text token i at (0, 0, 0, i), image tokens at (0, row, column, 0),
// those of reference pictures at (0, row, column, index) by reference_positions (R, 3) of index,
// row, column; rows and columns times `scale`. cos, sin: of the joint sequence, text, picture,
// references, (L + R, d/2) f32; the others of one kind. Of the latent and the text it reads shapes
// only.
struct Flux3Rope {
  static constexpr Info info{"flux3.rope",   1,  "FLUX 3 rotary tables",
                             "blocks/flux3", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE, "the latent (B, C, H, W)"};
  static constexpr Input<Tensor> context{"context", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> reference_positions{"reference_positions", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> axis_0{"axis_0", Widget{.number = 32}};
  static constexpr Input<std::int64_t> axis_1{"axis_1", Widget{.number = 32}};
  static constexpr Input<std::int64_t> axis_2{"axis_2", Widget{.number = 32}};
  static constexpr Input<std::int64_t> axis_3{"axis_3", Widget{.number = 32}};
  static constexpr Input<double> theta{"theta", Widget{.number = 10000}};
  static constexpr Input<double> scale{"scale", Widget{.number = 0.5}};
  static constexpr Output<Tensor> cos{"cos"};
  static constexpr Output<Tensor> sin{"sin"};
  static constexpr Output<Tensor> text_cos{"text_cos"};
  static constexpr Output<Tensor> text_sin{"text_sin"};
  static constexpr Output<Tensor> image_cos{"image_cos"};
  static constexpr Output<Tensor> image_sin{"image_sin"};
  static constexpr Output<Tensor> reference_cos{"reference_cos"};
  static constexpr Output<Tensor> reference_sin{"reference_sin"};
  static constexpr auto ports = heddle::ports(
      x, context, reference_positions, axis_0, axis_1, axis_2, axis_3, theta, scale, cos, sin,
      text_cos, text_sin, image_cos, image_sin, reference_cos, reference_sin);
  static void execute(Context& ctx);
};

// references (1|B, R, C) -> (B, R, D); none: (B, 0, D).
struct Flux3ReferenceIn {
  static constexpr Info info{"flux3.reference_in", 1,  "FLUX 3 reference projection",
                             "blocks/flux3",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> references{"references", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE, "the latent, for B"};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Output<Tensor> out{"references"};
  static constexpr auto ports = heddle::ports(references, x, weight, out);
  static void execute(Context& ctx);
};

// txt (B, T, D), img (B, S, D), references (B, R, D) -> (B, L + R, D), in this order.
struct Flux3Join {
  static constexpr Info info{"flux3.join",   1,  "FLUX 3 join of the streams",
                             "blocks/flux3", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> txt{"txt"};
  static constexpr Input<Tensor> img{"img"};
  static constexpr Input<Tensor> references{"references"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(txt, img, references, out);
  static void execute(Context& ctx);
};

// Attention and MLP side by side, both of one norm: hidden (B, l, D) -> the same. mod (1, 1, 3 D)
// is of all tokens; where txt and its text_mod are given, of which txt is read for its T alone, the
// first T have that one, and the last R, for which references is read, reference_mod. Nobody reads
// `each_step`: linked to what is new in each step, it has the layer run in each. A group of devices
// may have some of the tokens each, or some of the heads and of the MLP.
struct Flux3Layer {
  static constexpr Info info{"flux3.layer",  1,  "FLUX 3 layer",
                             "blocks/flux3", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> mod{"mod"};
  static constexpr Input<Tensor> text_mod{"text_mod", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> reference_mod{"reference_mod", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> txt{"txt", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> references{"references", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> each_step{"each_step", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> cos{"cos"};
  static constexpr Input<Tensor> sin{"sin"};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 24}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight q_norm{"q_norm"};
  static constexpr Weight k_norm{"k_norm"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up{"mlp.up.weight", HEDDLE_USE_LINEAR};  // gate, then up: (2F, D)
  static constexpr Weight down{"mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Output<Tensor> out{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr auto ports =
      heddle::ports(hidden, mod, text_mod, reference_mod, txt, references, each_step, cos, sin,
                    heads, eps, qkv, q_norm, k_norm, proj, up, down, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
