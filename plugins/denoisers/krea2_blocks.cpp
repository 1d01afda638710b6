#include "krea2_blocks.h"

#include <cmath>
#include <limits>

#include <heddle/checked.hpp>
#include <heddle/norm_ops.hpp>

#include "even_sides.h"
#include "joint_attention.h"
#include "patches.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

constexpr double kNoBound = std::numeric_limits<double>::infinity();

// x times `factor` plus `addend`; out may be x, or of another type.
void affine_into(Context& ctx, const Tensor& x, double factor, double addend, const Tensor& out) {
  static const Op op(HEDDLE_OP_SCALE_CLAMP);
  ctx.op(op, {x.raw()}, {out.raw()}, heddle_scale_clamp_attrs{factor, addend, -kNoBound, kNoBound});
}
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

// Queries, keys and values of x, one after another: (B, l, 3 H d), each head of keys and values as
// often as queries share it. H: of this device's heads. cos, sin: of these tokens, or empty.
template <class B>
Tensor project_heads(Context& ctx, const Tensor& x, const Tensor& cos, const Tensor& sin) {
  const Tensor qkv = ops::linear(ctx, x, ctx[B::qkv], {});
  const std::int64_t times = ctx[B::heads] / ctx[B::kv_heads], head = ctx[B::q_norm].size(0),
                     kv_heads = qkv.size(2) / (head * (times + 2)), heads = kv_heads * times,
                     queries = heads * head, keys = queries + kv_heads * head;
  const Tensor all = ctx.make({x.size(0), x.size(1), 3 * queries});
  const auto third = [&](int i) {
    return blocks::split_heads(all.slice(2, i * queries, (i + 1) * queries), heads);
  };
  const Tensor k = blocks::split_heads(qkv.slice(2, queries, keys), kv_heads),
               v = blocks::split_heads(qkv.slice(2, keys, qkv.size(2)), kv_heads);
  ops::norm_rope_into(ctx, blocks::split_heads(qkv.slice(2, 0, queries), heads),
                      as_factor(ctx, ctx[B::q_norm]), cos, sin, ctx[B::eps], third(0));
  ops::norm_rope_into(ctx, k, as_factor(ctx, ctx[B::k_norm]), cos, sin, ctx[B::eps], k);
  for (std::int64_t i = 0; i < times; ++i) {
    const auto copies = [&](const Tensor& to) {
      return to.reshape({x.size(0), x.size(1), kv_heads, times, head}).slice(3, i, i + 1);
    };
    const Shape one{x.size(0), x.size(1), kv_heads, 1, head};
    ops::copy_into(ctx, k.reshape(one), copies(third(1)));
    ops::copy_into(ctx, v.reshape(one), copies(third(2)));
  }
  return all;
}

// What an attention gave, gated by x.
template <class B>
Tensor gated(Context& ctx, const Tensor& seen, const Tensor& x) {
  // sigmoid(g) is (1 + tanh(g / 2)) / 2; in f32, as gates that are nearly shut lose all bits else.
  const Tensor gate = ctx.make(seen.shape(), HEDDLE_F32), out = ctx.make(seen.shape());
  affine_into(ctx, ops::linear(ctx, x, ctx[B::gate], {}), 0.5, 0, gate);
  ops::activate_into(ctx, gate, HEDDLE_ACT_TANH, gate);
  affine_into(ctx, gate, 0.5, 0.5, gate);
  ops::mul_into(ctx, gate, seen, out);
  return out;
}

// The first half of the MLP.
template <class B>
Tensor raised(Context& ctx, const Tensor& x) {
  const Tensor both = ops::linear(ctx, x, ctx[B::up], {});
  const std::int64_t width = both.size(2) / 2;
  const Tensor out = ctx.make({both.size(0), both.size(1), width});
  ops::gated_activation_into(ctx, both.slice(2, 0, width), both.slice(2, width, 2 * width),
                             HEDDLE_ACT_SILU, out);
  return out;
}

// The nth norm of a layer of the joint sequence: before the attention (0) or the MLP (1).
Tensor modulated(Context& ctx, const Tensor& x, int norm) {
  using B = Krea2Layer;
  const Tensor mod = ctx[B::mod], out = ctx.make(x.shape());
  const auto row = [&](int n) { return piece(mod, n, 6).reshape({1, 1, x.size(2)}); };
  ops::modulated_rms_norm_into(ctx, x, row(3 * norm), row(3 * norm + 1), ctx[B::eps], out);
  return out;
}

// x plus y through a matrix, gated by what is behind this norm. A group of devices may have y, and
// the matrix, in parts: each multiplies its own.
Tensor added(Context& ctx, const Tensor& x, const Tensor& y, const Weight& matrix, int norm) {
  const Tensor sum = ctx.group().kind == HEDDLE_GROUP_ROWS
                         ? ops::all_reduce(ctx, blocks::wide_linear(ctx, y, ctx[matrix], {}))
                         : ops::linear(ctx, y, ctx[matrix], {});
  const Tensor mod = ctx[Krea2Layer::mod];
  return ops::gated_add(ctx, x, piece(mod, 3 * norm + 2, 6).reshape({1, 1, x.size(2)}), sum);
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

void Krea2TextLayer::execute(Context& ctx) {
  using B = Krea2TextLayer;
  const Tensor given = ctx[hidden], weights = ctx[norms];
  const std::int64_t n = ctx[states];
  const Tensor x =
      n == 1 ? given : given.reshape({given.size(0) * given.size(1), n, given.size(2) / n});
  const auto normed = [&](const Tensor& from, int norm) {
    return ops::rms_norm(ctx, from, as_factor(ctx, piece(weights, norm, 2)), ctx[eps]);
  };
  const Tensor first = normed(x, 0), all = project_heads<B>(ctx, first, {}, {});
  const std::int64_t count = ctx[heads];
  const Tensor q = part_of_heads(all, 0, count);
  const Tensor seen =
      ops::attention(ctx, q, part_of_heads(all, 1, count), part_of_heads(all, 2, count), {},
                     1 / std::sqrt(double(q.size(3))));
  const Tensor middle = blocks::wide_linear(ctx, gated<B>(ctx, blocks::join_heads(seen), first),
                                            ctx[proj], {}, HEDDLE_ACT_NONE, x);
  ctx[out] = blocks::wide_linear(ctx, raised<B>(ctx, normed(middle, 1)), ctx[down], {},
                                 HEDDLE_ACT_NONE, middle)
                 .reshape(given.shape());
}

void Krea2Layer::execute(Context& ctx) {
  using B = Krea2Layer;
  const Tensor x = ctx[hidden], first = modulated(ctx, x, 0);
  const heddle_shard shard = ctx.shard(hidden);
  const Tensor own = project_heads<B>(ctx, first, ctx[cos].slice(0, shard.begin, shard.end),
                                      ctx[sin].slice(0, shard.begin, shard.end));
  const std::int64_t head = ctx[q_norm].size(0), count = own.size(2) / (3 * head);
  const JointShard joint = joint_shard(ctx, shard.begin, shard.total, count);
  const Tensor gathered = make_gathered(ctx, own, joint, count);
  gather_tokens(ctx, own, 0, joint, count, gathered);
  const Tensor seen = ctx.make({x.size(0), x.size(1), count, head});
  attend(ctx, gathered, joint, seen);
  const Tensor middle = added(ctx, x, gated<B>(ctx, blocks::join_heads(seen), first), proj, 0);
  ctx[out] = added(ctx, middle, raised<B>(ctx, modulated(ctx, middle, 1)), down, 1);
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
