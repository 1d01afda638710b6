#include "sam3_memory_blocks.h"

#include <cmath>

#include <heddle/batch_ops.hpp>

#include "plugins/blocks/heads.h"
#include "plugins/blocks/wide.h"
#include "wide_math.h"

namespace heddle::detection {
namespace {

// A depthwise filter (C, 1, R, S) of PyTorch: (R, S, C).
Tensor taps_of(Context& ctx, const Tensor& filter) {
  const std::int64_t channels = filter.size(0), rows = filter.size(2), columns = filter.size(3);
  const Tensor out = ctx.make({rows, columns, channels}, ctx.compute());
  ops::copy_into(ctx, filter.reshape({channels, rows, columns}).permute({1, 2, 0}), out);
  return out;
}

// x (1, N, H d) f32 -> (1, N, H, d) in the compute type; the first `turning` rows, whose cells are
// those of the tables again and again, turn.
Tensor turned_heads(Context& ctx, const Tensor& x, std::int64_t heads, std::int64_t turning,
                    const Tensor& cosines, const Tensor& sines) {
  const std::int64_t count = x.size(1), cells = cosines.size(0), head = x.size(2) / heads;
  const Tensor out = ctx.make({1, count, heads, head}), from = blocks::split_heads(x, heads);
  const auto frames = [&](const Tensor& rows) {
    return rows.slice(1, 0, turning).reshape({turning / cells, cells, heads, head});
  };
  if (turning > 0) ops::norm_rope_into(ctx, frames(from), {}, cosines, sines, 0, frames(out));
  if (turning < count)
    ops::copy_into(ctx, from.slice(1, turning, count), out.slice(1, turning, count));
  return out;
}

// x + a matrix of what queries get of keys and values.
Tensor attended(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& proj,
                const Tensor& proj_bias, const Tensor& x) {
  const double scale = 1 / std::sqrt(double(q.size(3)));
  const Tensor made = blocks::join_heads(ops::attention(ctx, q, k, v, {}, scale));
  return product(ctx, made, proj, proj_bias, HEDDLE_ACT_NONE, x);
}

// t (N) f32 -> (N, width): half of them sines, half cosines, each frequency twice in a row.
Tensor twofold_waves(Context& ctx, const Tensor& t, std::int64_t width) {
  constexpr double kLongest = 10000;
  const std::int64_t count = t.size(0), half = width / 2;
  const Tensor once = ctx.make({count, half}, HEDDLE_F32),
               out = ctx.make({count, half, 2}, HEDDLE_F32);
  ops::timestep_embedding_into(ctx, t, {1, kLongest, 0, 0, 0}, once);
  for (int i = 0; i < 2; ++i)
    ops::copy_into(ctx, once.reshape({count, half, 1}), out.slice(2, i, i + 1));
  return out.reshape({count, width});
}

}  // namespace

void Sam3MaskStage::execute(Context& ctx) {
  Tensor x = ctx[masks];
  if (ctx.has(trusted)) {
    const std::int64_t slots = x.size(3);
    const Tensor both = ctx.make({1, x.size(1), x.size(2), 2 * slots}, HEDDLE_F32);
    ops::fill(ctx, both, 0);
    ops::copy_into(ctx, x, both.slice(3, 0, slots));
    const Tensor rest = both.slice(3, slots, 2 * slots);
    ops::add_into(ctx, rest, ctx[trusted].reshape({1, 1, 1, slots}), rest);
    x = both;
  }
  const Tensor made = blocks::wide_conv2d(ctx, narrow(ctx, x), ctx[conv], ctx[conv_bias],
                                          heddle_conv2d_attrs{{2, 2}, {1, 1, 1, 1}});
  const Tensor normed = normalised(ctx, made, ctx[norm], ctx[norm_bias], ctx[eps]);
  ops::activate_into(ctx, normed, HEDDLE_ACT_GELU, normed);
  ctx[out] = normed;
}

void Sam3MaskOnGrid::execute(Context& ctx) {
  ctx[out] = sum(ctx, convolved(ctx, ctx[grid], ctx[seen], ctx[seen_bias]),
                 convolved(ctx, ctx[masks], ctx[last], ctx[last_bias]));
}

void Sam3Fuse::execute(Context& ctx) {
  const Tensor whole = ctx[grid];
  const Tensor made =
      ops::depthwise_conv2d(ctx, narrow(ctx, whole), taps_of(ctx, ctx[filter]), ctx[filter_bias]);
  const Tensor normed = ops::layer_norm(ctx, made, ctx[norm], ctx[norm_bias], ctx[eps]);
  const Tensor raised = ops::linear(ctx, normed, ctx[up], ctx[up_bias], HEDDLE_ACT_GELU);
  const Tensor lowered = product(ctx, raised, ctx[down], ctx[down_bias]);
  const Tensor weight = ctx[scale];
  ops::mul_into(ctx, lowered, weight.reshape({1, 1, 1, weight.size(0)}), lowered);
  ctx[out] = sum(ctx, whole, lowered);
}

void Sam3Memory::execute(Context& ctx) {
  const Tensor whole = ctx[grid], weights = ctx[absent], rows = ctx[table];
  const std::int64_t slots = rows.size(0), channels = rows.size(1);
  const Tensor added =
      ops::batched_product(ctx, narrow(ctx, weights).reshape({1, 1, slots}),
                           narrow(ctx, rows).reshape({1, slots, channels}), HEDDLE_F32);
  ctx[out] = sum(ctx, whole.reshape({1, whole.size(1) * whole.size(2), channels}), added);
}

void Sam3MemoryPlaces::execute(Context& ctx) {
  constexpr double kPart = 0.1;
  const Tensor own = ctx[places], table = ctx[times], moments = ctx[frames], old = ctx[ages];
  const std::int64_t cell_count = own.size(1), channels = own.size(2), count = moments.size(0),
                     pointers = old.size(0), rows = ctx[each];
  ctx[start] = ops::combine(ctx, {{1, ctx[cells]}, {kPart, own}});
  const Tensor all = ctx.make({1, count * cell_count + pointers * rows, channels}, HEDDLE_F32);
  const Tensor times_of =
      blocks::wide_embedding(ctx, table.reshape({table.size(0), channels}), moments);
  for (std::int64_t i = 0; i < count; ++i)
    ops::add_into(ctx, own, times_of.slice(0, i, i + 1).reshape({1, 1, channels}),
                  all.slice(1, i * cell_count, (i + 1) * cell_count));
  const Tensor known =
      product(ctx, twofold_waves(ctx, old, ctx[proj].size(1)), ctx[proj], ctx[proj_bias]);
  const Tensor rest =
      all.slice(1, count * cell_count, all.size(1)).reshape({pointers, rows, channels});
  for (std::int64_t i = 0; i < rows; ++i)
    ops::copy_into(ctx, known.reshape({pointers, 1, channels}), rest.slice(1, i, i + 1));
  ctx[memory_places] = all;
}

void Sam3TurnedAttend::execute(Context& ctx) {
  const Tensor whole = ctx[x];
  const std::int64_t head_count = ctx[heads], rows = whole.size(1);
  const Tensor from = narrow(ctx, normalised(ctx, whole, ctx[norm], ctx[norm_bias], ctx[eps]));
  const auto turned = [&](const Weight& weight, const Weight& added) {
    return turned_heads(ctx, product(ctx, from, ctx[weight], ctx[added]), head_count, rows,
                        ctx[cosines], ctx[sines]);
  };
  const Tensor values =
      blocks::split_heads(ops::linear(ctx, from, ctx[v], ctx[v_bias]), head_count);
  ctx[out] =
      attended(ctx, turned(q, q_bias), turned(k, k_bias), values, ctx[proj], ctx[proj_bias], whole);
}

void Sam3MemoryAttend::execute(Context& ctx) {
  const Tensor whole = ctx[x], known = ctx[memory], before = ctx[past];
  const std::int64_t head_count = ctx[heads], turning = before.size(1), count = known.size(1);
  const Tensor from = normalised(ctx, whole, ctx[norm], ctx[norm_bias], ctx[eps]);
  const Tensor asked = product(ctx, ctx[cells], ctx[image_q], ctx[image_q_bias], HEDDLE_ACT_NONE,
                               product(ctx, from, ctx[q], ctx[q_bias]));
  const Tensor narrowed = narrow(ctx, known);
  const Tensor keys =
      product(ctx, narrowed, ctx[k], ctx[k_bias], HEDDLE_ACT_NONE, ctx[memory_places]);
  const Tensor seen = product(ctx, before, ctx[image_k], ctx[image_k_bias]);
  const Tensor of_frames = keys.slice(1, 0, turning);
  ops::add_into(ctx, of_frames, seen, of_frames);
  if (turning < count) {  // of pointers there are no cells: a product of zeros
    const Tensor of_pointers = keys.slice(1, turning, count), added = ctx[image_k_bias];
    ops::add_into(ctx, of_pointers, added.reshape({1, 1, added.size(0)}), of_pointers);
  }
  const Tensor values =
      blocks::split_heads(ops::linear(ctx, narrowed, ctx[v], ctx[v_bias]), head_count);
  const auto turned = [&](const Tensor& rows, std::int64_t that_turn) {
    return turned_heads(ctx, rows, head_count, that_turn, ctx[cosines], ctx[sines]);
  };
  ctx[out] = attended(ctx, turned(asked, whole.size(1)), turned(keys, turning), values, ctx[proj],
                      ctx[proj_bias], whole);
}

void Sam3Normed::execute(Context& ctx) {
  ctx[out] = normalised(ctx, ctx[x], ctx[norm], ctx[norm_bias], ctx[eps]);
}

void Sam3Product::execute(Context& ctx) {
  ctx[out] = product(ctx, ctx[x], ctx[matrix], ctx[added]);
}

void Sam3MaskLogits::execute(Context& ctx) {
  ctx[out] = blocks::wide_conv2d(ctx, narrow(ctx, ctx[mask]), ctx[conv], ctx[conv_bias],
                                 heddle_conv2d_attrs{{4, 4}, {0, 0, 0, 0}});
}

}  // namespace heddle::detection
