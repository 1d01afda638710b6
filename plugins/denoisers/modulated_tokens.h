// plugins/denoisers/modulated_tokens.h - what blocks of FLUX's kind do to tokens between their
// products: norms, each token with the modulation of its kind, and gated MLPs. Shapes: B batch, l
// tokens, D width, H heads of d. Used in blocks, as they are traced; any thread.
#pragma once

#include <vector>

#include <heddle/ops.hpp>

#include "joint_attention.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {

// One step's modulation (1, 1|B, k D) as k tensors (1|B, 1, D).
inline std::vector<Tensor> modulation(const Tensor& mod, int count) {
  if (mod.size(0) != 1)
    throw Error(HEDDLE_INTERNAL, "a block of one step got the modulation of " +
                                     std::to_string(mod.size(0)) + " steps");
  const Tensor by_item = mod.permute({1, 0, 2});
  const std::int64_t width = mod.size(2) / count;
  std::vector<Tensor> parts;
  for (int i = 0; i < count; ++i) parts.push_back(by_item.slice(2, i * width, (i + 1) * width));
  return parts;
}

// Tokens of a stream, and what modulates them.
struct Modulated {
  Range at;
  std::vector<Tensor> mod;
};
using ModulatedTokens = std::vector<Modulated>;

// Norm of all tokens; `first` of their modulation is the shift, the next the scale.
inline Tensor norm_tokens(Context& ctx, const Tensor& x, const ModulatedTokens& parts,
                          std::size_t first, double eps) {
  const Tensor normed = ctx.make(x.shape());
  for (const auto& [at, mod] : parts)
    ops::modulated_norm_into(ctx, tokens(x, at), mod[first], mod[first + 1], eps,
                             tokens(normed, at));
  return normed;
}

// x + gate * y, `gate` the number of it in the modulation.
inline Tensor add_gated(Context& ctx, const Tensor& x, const ModulatedTokens& parts,
                        std::size_t gate, const Tensor& y) {
  if (parts.size() == 1) return ops::gated_add(ctx, x, parts.front().mod[gate], y);
  const Tensor sum = ctx.make_like(x);
  for (const auto& [at, mod] : parts)
    ops::copy_into(ctx, ops::gated_add(ctx, tokens(x, at), mod[gate], tokens(y, at)),
                   tokens(sum, at));
  return sum;
}

// Norm and rotation of q and k of qkv (B, l, 3 H d), where they lie.
inline void norm_heads(Context& ctx, const Tensor& qkv, std::int64_t heads, const Tensor& q_weight,
                       const Tensor& k_weight, const Tensor& cos, const Tensor& sin, double eps) {
  const Tensor q = part_of_heads(qkv, 0, heads), k = part_of_heads(qkv, 1, heads);
  ops::norm_rope_into(ctx, q, q_weight, cos, sin, eps, q);
  ops::norm_rope_into(ctx, k, k_weight, cos, sin, eps, k);
}

// The width of an MLP by its first matrix.
inline std::int64_t mlp_width(const Tensor& up, bool is_gated) {
  return up.size(0) / (is_gated ? 2 : 1);
}

// The first half of an MLP: x (B, l, D) -> out (B, l, mlp).
inline void raise(Context& ctx, const Tensor& x, const Tensor& up, const Tensor& bias,
                  bool is_gated, const Tensor& out) {
  if (!is_gated) return ops::linear_into(ctx, x, up, bias, HEDDLE_ACT_GELU_TANH, {}, out);
  const Tensor both = blocks::wide_linear(ctx, x, up, bias);
  const std::int64_t width = out.size(2);
  ops::gated_activation_into(ctx, both.slice(2, 0, width), both.slice(2, width, 2 * width),
                             HEDDLE_ACT_SILU, out);
}

}  // namespace heddle::denoisers
