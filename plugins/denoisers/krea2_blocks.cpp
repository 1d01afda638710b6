#include "krea2_blocks.h"

#include <cmath>
#include <limits>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "even_sides.h"
#include "patches.h"
#include "plugins/blocks/grouped_heads.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

constexpr double kNoBound = std::numeric_limits<double>::infinity();

// x times `factor` plus `addend`.
Tensor affine(Context& ctx, const Tensor& x, double factor, double addend) {
  return ops::scale_clamp(ctx, x, {factor, addend, -kNoBound, kNoBound});
}

// The nth of `count` pieces of the numbers of x, as (size).
Tensor piece(const Tensor& x, int n, std::int64_t count) {
  const std::int64_t size = x.count() / count;
  return x.reshape({size * count}).slice(0, n * size, (n + 1) * size);
}

// A norm's weight in files -> what is multiplied by.
Tensor as_factor(Context& ctx, const Tensor& weight) {
  return affine(ctx, ops::cast(ctx, weight, HEDDLE_F32), 1, 1);
}

// The norm of this number before the attention (0) or the MLP (1), modulated where the layer is.
Tensor normed(Context& ctx, const Tensor& x, int norm) {
  using B = Krea2Layer;
  if (!ctx.has(B::mod))
    return ops::rms_norm(ctx, x, as_factor(ctx, piece(ctx[B::norms], norm, 2)), ctx[B::eps]);
  const Tensor mod = ctx[B::mod], raw = ctx.make(x.shape(), HEDDLE_F32), out = ctx.make(x.shape());
  ops::rms_norm_into(ctx, x, piece(mod, 3 * norm, 6), ctx[B::eps], raw);
  ops::add_into(ctx, raw, piece(mod, 3 * norm + 1, 6).reshape({1, 1, x.size(2)}), out);
  return out;
}

// x plus `y` through a matrix, gated by what is behind this norm where the layer is modulated.
Tensor added(Context& ctx, const Tensor& x, const Tensor& y, const Weight& matrix, int norm) {
  using B = Krea2Layer;
  if (!ctx.has(B::mod)) return blocks::wide_linear(ctx, y, ctx[matrix], {}, HEDDLE_ACT_NONE, x);
  const Tensor gate = piece(ctx[B::mod], 3 * norm + 2, 6).reshape({1, 1, x.size(2)});
  return ops::gated_add(ctx, x, gate, blocks::wide_linear(ctx, y, ctx[matrix], {}));
}

// Grouped queries, with a gate on what they give.
Tensor gated_attention(Context& ctx, const Tensor& x) {
  using B = Krea2Layer;
  const Tensor qkv = ops::linear(ctx, x, ctx[B::qkv], {});
  const std::int64_t heads = ctx[B::heads], kv_heads = ctx[B::kv_heads], times = heads / kv_heads,
                     head = qkv.size(2) / (heads + 2 * kv_heads), queries = heads * head,
                     keys = queries + kv_heads * head;
  const Tensor q = blocks::split_heads(qkv.slice(2, 0, queries), heads),
               k = blocks::split_heads(qkv.slice(2, queries, keys), kv_heads);
  const bool turns = ctx.has(B::cos);
  const Tensor turn_cos = turns ? ctx[B::cos] : Tensor(), turn_sin = turns ? ctx[B::sin] : Tensor();
  ops::norm_rope_into(ctx, q, as_factor(ctx, ctx[B::q_norm]), turn_cos, turn_sin, ctx[B::eps], q);
  ops::norm_rope_into(ctx, k, as_factor(ctx, ctx[B::k_norm]), turn_cos, turn_sin, ctx[B::eps], k);
  const Tensor seen = blocks::join_heads(ops::attention(
      ctx, q, blocks::for_all_heads(ctx, qkv.slice(2, queries, keys), kv_heads, times),
      blocks::for_all_heads(ctx, qkv.slice(2, keys, qkv.size(2)), kv_heads, times), {},
      1 / std::sqrt(double(head))));
  // sigmoid(g) is (1 + tanh(g / 2)) / 2; in f32, as gates that are nearly shut lose all bits else.
  const Tensor gate = blocks::wide_linear(ctx, x, ctx[B::gate], {}),
               half = ops::activate(ctx, affine(ctx, gate, 0.5, 0), HEDDLE_ACT_TANH);
  const Tensor out = ctx.make(seen.shape());
  ops::mul_into(ctx, affine(ctx, half, 0.5, 0.5), seen, out);
  return out;
}

}  // namespace

void Krea2Vector::execute(Context& ctx) {
  const Tensor levels = ctx[timestep], in = ctx[time_in];
  const Tensor waves = ctx.make({levels.size(0), in.size(1)}, HEDDLE_F32);
  ops::timestep_embedding_into(ctx, levels, {ctx[time_scale], ctx[max_period], 0, 1, 0}, waves);
  const Tensor hidden =
      blocks::wide_linear(ctx, waves, in, ctx[time_in_bias], HEDDLE_ACT_GELU_TANH);
  const Tensor time = blocks::wide_linear(ctx, hidden, ctx[time_out], ctx[time_out_bias]);
  ctx[out] = time.reshape({time.size(0), 1, time.size(1)});
}

void Krea2SharedModulation::execute(Context& ctx) {
  const Tensor activated = ops::activate(ctx, ctx[vector], HEDDLE_ACT_GELU_TANH);
  ctx[out] = blocks::wide_linear(ctx, activated, ctx[weight], ctx[bias]);
}

void Krea2Modulation::execute(Context& ctx) {
  const Tensor added = ctx[table], given = ctx[shared], weights = ctx[norms];
  const std::int64_t all = added.count(), pieces = ctx[repeats] ? all / given.size(2) : 6,
                     width = all / pieces, norm_count = weights.count() / width,
                     each = pieces / norm_count;
  const Tensor made = ctx.make({given.size(0), 1, all}, HEDDLE_F32);
  for (int i = 0; i < pieces; ++i) {
    const Tensor from = ctx[repeats] ? given : given.slice(2, i * width, (i + 1) * width),
                 to = made.slice(2, i * width, (i + 1) * width);
    ops::add_into(ctx, from, piece(added, i, pieces).reshape({1, 1, width}), to);
    if (i % each != 0) continue;
    const Tensor factor = as_factor(ctx, piece(weights, int(i / each), norm_count));
    ops::mul_into(ctx, affine(ctx, to, 1, 1), factor.reshape({1, 1, width}), to);
  }
  ctx[out] = made;
}

void Krea2Layer::execute(Context& ctx) {
  const Tensor given = ctx[hidden];
  const std::int64_t n = ctx[states];
  const Tensor x =
      n == 1 ? given : given.reshape({given.size(0) * given.size(1), n, given.size(2) / n});
  const Tensor middle = added(ctx, x, gated_attention(ctx, normed(ctx, x, 0)), proj, 0);
  const Tensor both = blocks::wide_linear(ctx, normed(ctx, middle, 1), ctx[up], {});
  const std::int64_t width = both.size(2) / 2;
  const Tensor raised = ctx.make({both.size(0), both.size(1), width});
  ops::gated_activation_into(ctx, both.slice(2, 0, width), both.slice(2, width, 2 * width),
                             HEDDLE_ACT_SILU, raised);
  ctx[out] = added(ctx, middle, raised, down, 1).reshape(given.shape());
}

void Krea2TextMix::execute(Context& ctx) {
  const Tensor given = ctx[hidden], weights = ctx[weight];
  const std::int64_t n = weights.size(1), batch = given.size(0), length = given.size(1),
                     width = given.size(2) / n;
  const Tensor turned = ctx.make({batch, length, width, n});
  ops::copy_into(ctx, given.reshape({batch, length, n, width}).permute({0, 1, 3, 2}), turned);
  ctx[out] = blocks::wide_linear(ctx, turned, weights, {}).reshape({batch, length, width});
}

void Krea2TextIn::execute(Context& ctx) {
  const Tensor seen = ops::rms_norm(ctx, ctx[hidden], as_factor(ctx, ctx[norm]), ctx[eps]);
  const Tensor raised = ops::linear(ctx, seen, ctx[in], ctx[in_bias], HEDDLE_ACT_GELU_TANH);
  ctx[out] = blocks::wide_linear(ctx, raised, ctx[last], ctx[last_bias]);
}

void Krea2ImageIn::execute(Context& ctx) {
  const Tensor latent = ctx[x], matrix = ctx[weight];
  const std::int64_t width = latent.size(1) * kPatchArea;
  if (width != matrix.size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the model takes " + std::to_string(matrix.size(1) / kPatchArea) +
                    " latent channels, got " + std::to_string(latent.size(1)));
  const Tensor patches = as_patches(even_sides(ctx, latent), kPatch);
  const Tensor packed = ctx.make({latent.size(0), token_count(latent, kPatch), width}, HEDDLE_F32);
  ops::copy_into(ctx, patches, packed.reshape(patches.shape()));
  ctx[out] = blocks::wide_linear(ctx, packed, matrix, ctx[bias]);
}

void Krea2Rope::execute(Context& ctx) {
  const Tensor latent = ctx[x];
  const std::int64_t text = ctx[context].size(1), rows = tokens_along(latent.size(2)),
                     columns = tokens_along(latent.size(3)), all = text + rows * columns;
  const Tensor ids = ctx.make({all, 3}, HEDDLE_F32);
  if (text > 0) ops::fill(ctx, ids.slice(0, 0, text), 0);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{1, rows, columns}, {0, 0, 0}},
                     ids.slice(0, text, all));
  const heddle_rope_table_attrs attrs{3,
                                      0,
                                      {checked_cast<std::int32_t>(ctx[axis_0], "axis_0"),
                                       checked_cast<std::int32_t>(ctx[axis_1], "axis_1"),
                                       checked_cast<std::int32_t>(ctx[axis_2], "axis_2"), 0},
                                      ctx[theta]};
  const auto [c, s] = ops::rope_table(ctx, ids, attrs);
  ctx[cos] = c;
  ctx[sin] = s;
}

void Krea2Final::execute(Context& ctx) {
  const Tensor latent = ctx[x], all = ctx[hidden], matrix = ctx[weight], weights = ctx[mod];
  const std::int64_t batch = all.size(0), height = latent.size(2), width = latent.size(3),
                     rows = tokens_along(height), columns = tokens_along(width),
                     channels = matrix.size(0) / kPatchArea;
  const Tensor image = all.slice(1, all.size(1) - rows * columns, all.size(1));
  const Tensor seen = ctx.make(image.shape(), HEDDLE_F32);
  ops::rms_norm_into(ctx, image, piece(weights, 0, 2), ctx[eps], seen);
  ops::add_into(ctx, seen, piece(weights, 1, 2).reshape({1, 1, image.size(2)}), seen);
  const Tensor packed = blocks::wide_linear(ctx, seen, matrix, ctx[bias]);
  const Tensor even = ctx.make({batch, channels, rows * kPatch, columns * kPatch}, latent.dtype());
  ops::copy_into(ctx, packed.reshape({batch, rows, columns, channels, kPatch, kPatch}),
                 as_patches(even, kPatch));
  const bool is_even = even.size(2) == height && even.size(3) == width;
  ctx[out] = is_even ? even : ops::contiguous(ctx, even.slice(2, 0, height).slice(3, 0, width));
}

}  // namespace heddle::denoisers
