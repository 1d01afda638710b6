// plugins/denoisers/flux2_blocks.h - the block types that FLUX.2 has besides those that it shares
// with FLUX.1 (flux_blocks.h, whose letters for shapes are used here). Source of the architecture:
// Flux2Transformer2DModel of diffusers, by the publisher of the model. Blocks are pure and have no
// instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::denoisers {

// timestep (N) in [0, 1], guidance (1|B) -> vector (N, 1|B, D), already through SiLU because every
// reader would begin with it. With a reference_timestep (1) it is (N, 2, D): of the timestep, then
// of that; guidance is then (1).
struct Flux2Vector {
  static constexpr Info info{"flux2.vector", 1,  "FLUX.2 timestep and guidance",
                             "blocks/flux2", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> timestep{"timestep"};
  static constexpr Input<Tensor> reference_timestep{"reference_timestep", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> guidance{"guidance", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> unguided{"unguided", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE,
                                          "given: no guidance is told, not even the default"};
  static constexpr Input<double> default_guidance{"default_guidance", Widget{.number = 3.5}};
  static constexpr Input<double> time_scale{"time_scale", Widget{.number = 1000}};
  static constexpr Input<double> max_period{"max_period", Widget{.number = 10000}};
  static constexpr Weight time_in{"time.in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight time_out{"time.out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight guidance_in{"guidance.in.weight", HEDDLE_USE_LINEAR,
                                      HEDDLE_PORT_OPTIONAL};
  static constexpr Weight guidance_out{"guidance.out.weight", HEDDLE_USE_LINEAR,
                                       HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"vector"};
  static constexpr auto ports =
      heddle::ports(timestep, reference_timestep, guidance, unguided, default_guidance, time_scale,
                    max_period, time_in, time_out, guidance_in, guidance_out, out);
  static void execute(Context& ctx);
};

// The rotary table of the joint sequence, on four axes: text token i at (0, 0, 0, i), image tokens
// at (0, row, column, 0), or, with positions (2, 3) f32, at these times its first row, plus its
// second; then those of reference pictures, at reference_positions (R, 3). There are at least
// `least_tokens` of text. cos, sin: (L, d/2) f32. Of the latent and the text it reads shapes only.
struct Flux2Rope {
  static constexpr Info info{"flux2.rope",   1,  "FLUX.2 rotary table",
                             "blocks/flux2", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE, "the latent (B, C, H, W)"};
  static constexpr Input<Tensor> context{"context", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> nag{"nag", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> least{"least_tokens", Widget{.number = 0}};
  static constexpr Input<std::int64_t> axis_0{"axis_0", Widget{.number = 32}};
  static constexpr Input<std::int64_t> axis_1{"axis_1", Widget{.number = 32}};
  static constexpr Input<std::int64_t> axis_2{"axis_2", Widget{.number = 32}};
  static constexpr Input<std::int64_t> axis_3{"axis_3", Widget{.number = 32}};
  static constexpr Input<double> theta{"theta", Widget{.number = 2000}};
  static constexpr Input<Tensor> positions{"positions", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> reference_positions{"reference_positions", HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> cos{"cos"};
  static constexpr Output<Tensor> sin{"sin"};
  static constexpr auto ports =
      heddle::ports(x, context, nag, least, axis_0, axis_1, axis_2, axis_3, theta, positions,
                    reference_positions, cos, sin);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
