// plugins/denoisers/qwen21_blocks.h - the block types of Qwen-Image 2.1, a single stream of text
// and picture tokens, where text sees only what stands before it, a picture that is shown itself
// and what stands before it, and the one that is drawn all. Source of the architecture:
// QwenImage21Transformer2DModel of diffusers, by the publishers of the model. Shapes: B batch, T
// tokens of text, R of shown pictures, S of the one that is drawn, L = T + R + S, D width, H heads
// of d, F width of the gated MLP, N steps. The text stands first, with shown pictures in their
// places (qwen21_places.h). Nothing has a bias. Of two rows of a vector or a modulation the first
// is of the noise level, which the tokens of the drawn picture read, the second of the level 0,
// which all others read. Hidden states are f32 between blocks; only operands of matrix products are
// in the compute type. Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

#include "qwen21_places.h"

namespace heddle::denoisers {

// timestep (N), a noise level in [0, 1] -> vector (N, 2, D), activated.
struct Qwen21Vector {
  static constexpr Info info{"qwen21.vector", 1,  "Qwen-Image 2.1 timestep",
                             "blocks/qwen21", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> timestep{"timestep"};
  static constexpr Input<double> time_scale{"time_scale", Widget{.number = 1000}};
  static constexpr Input<double> max_period{"max_period", Widget{.number = 10000}};
  static constexpr Weight time_in{"time.in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight time_out{"time.out.weight", HEDDLE_USE_LINEAR};
  static constexpr Output<Tensor> out{"vector"};
  static constexpr auto ports =
      heddle::ports(timestep, time_scale, max_period, time_in, time_out, out);
  static void execute(Context& ctx);
};

// vector (N, 2, D) -> mod (N, 2, 4 D), which all layers share: scale and gate of the attention,
// then of the MLP; last (N, 1, D): the scale behind the layers.
struct Qwen21Modulation {
  static constexpr Info info{"qwen21.modulation", 1,  "Qwen-Image 2.1 modulation",
                             "blocks/qwen21",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> vector{"vector"};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight last_weight{"last.weight", HEDDLE_USE_LINEAR};
  static constexpr Output<Tensor> out{"mod"};
  static constexpr Output<Tensor> last{"last"};
  static constexpr auto ports = heddle::ports(vector, weight, last_weight, out, last);
  static void execute(Context& ctx);
};

// The rotary table of the joint sequence: tokens of text at (i, i, i), those of a picture at (i,
// row, column), rows and columns counted from the middle; behind a picture i goes on by the longer
// of its sides. A shown one with an odd side where the drawn one's is even, or the reverse, is half
// a token aside, so that their middles are one place. cos, sin: (L, d/2) f32. Reads shapes only.
struct Qwen21Rope {
  static constexpr Info info{"qwen21.rope",   1,  "Qwen-Image 2.1 rotary table",
                             "blocks/qwen21", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE, "the latent (B, C, H, W)"};
  static constexpr Input<Tensor> context{"context", HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> axis_0{"axis_0", Widget{.number = 16}};
  static constexpr Input<std::int64_t> axis_1{"axis_1", Widget{.number = 56}};
  static constexpr Input<std::int64_t> axis_2{"axis_2", Widget{.number = 56}};
  static constexpr Input<double> theta{"theta", Widget{.number = 10000}};
  static constexpr Output<Tensor> cos{"cos"};
  static constexpr Output<Tensor> sin{"sin"};
  static constexpr auto ports =
      qwen21_ports::with_places(x, context, axis_0, axis_1, axis_2, theta, cos, sin);
  static void execute(Context& ctx);
};

// context (1|B, T, D_text) -> txt (1|B, T, D). The norm multiplies by 1 + weight.
struct Qwen21TextIn {
  static constexpr Info info{"qwen21.text_in", 1,  "Qwen-Image 2.1 text input",
                             "blocks/qwen21",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> context{"context"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight in{"in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight last{"out.weight", HEDDLE_USE_LINEAR};
  static constexpr Output<Tensor> out{"txt"};
  static constexpr auto ports = heddle::ports(context, eps, norm, in, last, out);
  static void execute(Context& ctx);
};

// x (B, C, H, W) -> img (B, R + S, D): shown pictures (1|B, C, h, w), one after another, then x. A
// token is a pixel of the latent.
struct Qwen21ImageIn {
  static constexpr Info info{"qwen21.image_in", 1,  "Qwen-Image 2.1 picture input",
                             "blocks/qwen21",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Output<Tensor> out{"img"};
  static constexpr Input<Tensor> shown[kMostReferences] = {
      Input<Tensor>{"reference.0", HEDDLE_PORT_OPTIONAL},
      Input<Tensor>{"reference.1", HEDDLE_PORT_OPTIONAL},
      Input<Tensor>{"reference.2", HEDDLE_PORT_OPTIONAL},
      Input<Tensor>{"reference.3", HEDDLE_PORT_OPTIONAL},
      Input<Tensor>{"reference.4", HEDDLE_PORT_OPTIONAL},
      Input<Tensor>{"reference.5", HEDDLE_PORT_OPTIONAL},
      Input<Tensor>{"reference.6", HEDDLE_PORT_OPTIONAL},
      Input<Tensor>{"reference.7", HEDDLE_PORT_OPTIONAL},
      Input<Tensor>{"reference.8", HEDDLE_PORT_OPTIONAL},
      Input<Tensor>{"reference.9", HEDDLE_PORT_OPTIONAL}};
  static constexpr auto ports =
      heddle::ports(x, shown[0], shown[1], shown[2], shown[3], shown[4], shown[5], shown[6],
                    shown[7], shown[8], shown[9], weight, out);
  static void execute(Context& ctx);
};

// txt (1|B, T, D), img (B, R + S, D) -> hidden (B, L, D).
struct Qwen21Join {
  static constexpr Info info{"qwen21.join",   1,  "Qwen-Image 2.1 join",
                             "blocks/qwen21", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> txt{"txt"};
  static constexpr Input<Tensor> img{"img"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = qwen21_ports::with_places(txt, img, out);
  static void execute(Context& ctx);
};

// hidden (B, L, D) -> the same. context tells T. A group of devices may have some of the tokens
// each, or some of the heads and of the MLP.
struct Qwen21Layer {
  static constexpr Info info{"qwen21.layer",  1,  "Qwen-Image 2.1 layer",
                             "blocks/qwen21", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> context{"context", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> mod{"mod"};
  static constexpr Input<Tensor> cos{"cos"};
  static constexpr Input<Tensor> sin{"sin"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight q_norm{"q_norm.weight"};
  static constexpr Weight k_norm{"k_norm.weight"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up{"mlp.up.weight", HEDDLE_USE_LINEAR};  // gate, then up: (2F, D)
  static constexpr Weight down{"mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Output<Tensor> out{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr auto ports = qwen21_ports::with_places(hidden, context, mod, cos, sin, eps, qkv,
                                                          q_norm, k_norm, proj, up, down, out);
  static void execute(Context& ctx);
};

// hidden (B, L, D), last (1, 1, D), x (B, C, H, W) -> out (B, C, H, W): the velocity, noise -
// image.
struct Qwen21Final {
  static constexpr Info info{"qwen21.final",  1,  "Qwen-Image 2.1 output",
                             "blocks/qwen21", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> last{"last"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Output<Tensor> out{"out"};
  static constexpr auto ports = heddle::ports(hidden, last, x, eps, weight, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
