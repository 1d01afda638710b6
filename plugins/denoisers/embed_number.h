// plugins/denoisers/embed_number.h - a number (a noise level, a guidance) as a model reads it:
// waves of many lengths, then two linear layers with SiLU between them. Any thread.
#pragma once

#include <heddle/ops.hpp>

#include "plugins/blocks/wide.h"

namespace heddle::denoisers {

// The slots of the two layers: matrices (D, waves) and (D, D).
struct NumberLayers {
  const Weight &in, &in_bias, &out, &out_bias;
};

// t (N) f32 -> (N, D) f32. Biases may be none.
inline Tensor embed_number(Context& ctx, const Tensor& t,
                           const heddle_timestep_embedding_attrs& waves, const Tensor& in,
                           const Tensor& in_bias, const Tensor& out, const Tensor& out_bias) {
  const Tensor features = ctx.make({t.size(0), in.size(1)}, HEDDLE_F32);
  ops::timestep_embedding_into(ctx, t, waves, features);
  const Tensor hidden = blocks::wide_linear(ctx, features, in, in_bias, HEDDLE_ACT_SILU);
  return blocks::wide_linear(ctx, hidden, out, out_bias);
}
inline Tensor embed_number(Context& ctx, const Tensor& t,
                           const heddle_timestep_embedding_attrs& waves, const NumberLayers& w) {
  return embed_number(ctx, t, waves, ctx[w.in], ctx[w.in_bias], ctx[w.out], ctx[w.out_bias]);
}

// Levels (N) f32, each with the level (1) of reference pictures behind it -> (2 N).
inline Tensor with_reference_level(Context& ctx, const Tensor& levels, const Tensor& reference) {
  const std::int64_t steps = levels.size(0);
  const Tensor own = levels.reshape({steps, 1}), none = ops::scale_clamp(ctx, own, {0, 0, 0, 0});
  const Tensor both = ctx.make({steps, 2}, HEDDLE_F32);
  ops::copy_into(ctx, own, both.slice(1, 0, 1));
  ops::add_into(ctx, none, reference.reshape({1, 1}), both.slice(1, 1, 2));
  return both.reshape({2 * steps});
}

}  // namespace heddle::denoisers
