// plugins/denoisers/qwen_blocks.h - the block types that Qwen-Image has besides those that it
// shares with FLUX (flux_blocks.h, whose letters for shapes are used here). Source of the
// architecture: QwenImageTransformer2DModel of diffusers, by the publisher of the model. Blocks are
// pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::denoisers {

// timestep (N) in [0, 1] -> vector (N, 1, D), already through SiLU because every reader would begin
// with it. Nothing of a prompt is in it: all items of a step share it. With a reference_timestep
// (1) (N, 2, D): the second is that of the tokens of reference pictures. Of a model that is told
// what pictures it makes, the first row of `kinds` (2, D) is added, which stands for those with
// alpha; the second, for those without, is not asked for.
struct QwenVector {
  static constexpr Info info{"qwen.vector", 1,  "Qwen-Image timestep",
                             "blocks/qwen", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> timestep{"timestep"};
  static constexpr Input<Tensor> reference_timestep{"reference_timestep", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<double> time_scale{"time_scale", Widget{.number = 1000}};
  static constexpr Input<double> max_period{"max_period", Widget{.number = 10000}};
  static constexpr Weight time_in{"time.in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight time_in_bias{"time.in.bias"};
  static constexpr Weight time_out{"time.out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight time_out_bias{"time.out.bias"};
  static constexpr Weight kinds{"kinds", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"vector"};
  static constexpr auto ports =
      heddle::ports(timestep, reference_timestep, time_scale, max_period, time_in, time_in_bias,
                    time_out, time_out_bias, kinds, out);
  static void execute(Context& ctx);
};

// The rotary table of the joint sequence. The picture's middle is the origin: of n tokens along a
// side, n - n/2 lie before it, at (0, row, column). The text stands on the diagonal behind the
// larger half side m: token i at (m + i, m + i, m + i). Of several pictures in a latent the f-th
// lies at (f, row, column), and m is at least their number. Tokens of reference pictures stand at
// reference_positions (R, 3); the text then begins at text_start (1). cos, sin: (L, d/2) f32.
struct QwenRope {
  static constexpr Info info{"qwen.rope",   1,  "Qwen-Image rotary table",
                             "blocks/qwen", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE, "the latent (B, C, [F,] H, W)"};
  static constexpr Input<Tensor> context{"context", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> nag{"nag", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> reference_positions{"reference_positions", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> text_start{"text_start", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> axis_0{"axis_0", Widget{.number = 16}};
  static constexpr Input<std::int64_t> axis_1{"axis_1", Widget{.number = 56}};
  static constexpr Input<std::int64_t> axis_2{"axis_2", Widget{.number = 56}};
  static constexpr Input<double> theta{"theta", Widget{.number = 10000}};
  static constexpr Output<Tensor> cos{"cos"};
  static constexpr Output<Tensor> sin{"sin"};
  static constexpr auto ports = heddle::ports(x, context, nag, reference_positions, text_start,
                                              axis_0, axis_1, axis_2, theta, cos, sin);
  static void execute(Context& ctx);
};

// context (1|B, T, D_text) -> the same shape, f32: the RMS norm before the text's projection.
struct QwenTextNorm {
  static constexpr Info info{"qwen.text_norm", 1,  "Qwen-Image text norm",
                             "blocks/qwen",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> context{"context"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight weight{"weight"};
  static constexpr Output<Tensor> out{"context"};
  static constexpr auto ports = heddle::ports(context, eps, weight, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
