#include "language_attention.h"

#include <limits>
#include <string>

#include <heddle/ops.hpp>

#include "plugins/blocks/heads.h"

namespace heddle::encoders {
namespace {

constexpr double kFarOff = std::numeric_limits<double>::infinity();
// Added to what is not to be seen: far below any score, and no infinity, of which sums might be
// made.
constexpr double kHiddenScore = -1e30;

// x (B, S, K d) with each head `times` times, one behind the other: (B, S, K times, d), in the
// compute type.
Tensor repeated(Context& ctx, const Tensor& x, std::int64_t heads, std::int64_t times) {
  const std::int64_t width = x.size(2) / heads;
  const Tensor out = ctx.make({x.size(0), x.size(1), heads, times, width});
  const Tensor one = x.reshape({x.size(0), x.size(1), heads, 1, width});
  for (std::int64_t i = 0; i < times; ++i) ops::copy_into(ctx, one, out.slice(3, i, i + 1));
  return out.reshape({x.size(0), x.size(1), heads * times, width});
}

// (1, 1, S, S) f32: 0 where a key is less than `window` behind the query or after it, else unseen.
// What is after it a causal mask hides.
Tensor window_bias(Context& ctx, std::int64_t length, std::int64_t window) {
  const Tensor places = ops::contiguous(ctx, counted_places(ctx, length).slice(1, 0, 1));
  const Tensor before = ops::scale_clamp(ctx, places.reshape({length, 1}),
                                         {-1, double(window - 1), -kFarOff, kFarOff});
  const Tensor room = ops::add(ctx, before, places.reshape({1, length}));  // key - query + w - 1
  return ops::scale_clamp(ctx, room, {-kHiddenScore, 0, kHiddenScore, 0})
      .reshape({1, 1, length, length});
}

// The same where tokens of a group see each other, and those that come after one of no group are
// hidden here, too; window 0: all that is before is seen.
Tensor group_bias(Context& ctx, const Tensor& groups, std::int64_t window) {
  const std::int64_t length = groups.size(0);
  const Tensor places =
      ops::contiguous(ctx, counted_places(ctx, length).slice(1, 0, 1)).reshape({length, 1});
  const auto less = [&](const Tensor& row, const Tensor& column, double more) {
    const Tensor negative = ops::scale_clamp(ctx, column, {-1, more, -kFarOff, kFarOff});
    return ops::add(ctx, row, negative.reshape({1, length}));
  };
  const auto as_share = [&](const Tensor& x, double scale, double shift) {
    return ops::scale_clamp(ctx, x, {scale, shift, 0, 1});
  };
  // 1 where it holds: the key is not behind the query; both are of one group.
  const Tensor before = as_share(less(places, places, 1), 1, 0);
  const Tensor apart = less(groups.reshape({length, 1}), groups, 0);
  const Tensor together = as_share(ops::mul(ctx, apart, apart), -1, 1);
  Tensor seen = as_share(ops::add(ctx, before, together), 1, 0);
  if (window > 0 && length > window) {
    const Tensor near = as_share(less(places, places, 0), -1, double(window));
    seen = ops::mul(ctx, seen, near);
  }
  return ops::scale_clamp(ctx, seen, {-kHiddenScore, kHiddenScore, kHiddenScore, 0})
      .reshape({1, 1, length, length});
}

}  // namespace

Tensor counted_places(Context& ctx, std::int64_t length) {
  const Tensor grid = ctx.make({length, 3}, HEDDLE_F32);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{length, 1, 1}, {0, 0, 0}}, grid);
  return grid;
}

Tensor keys_and_values(Context& ctx, const Tensor& keys, const Tensor& values) {
  const std::int64_t width = values.size(2);
  const Tensor both = ctx.make({keys.size(0), keys.size(1), 2 * width});
  ops::copy_into(ctx, blocks::join_heads(keys), both.slice(2, 0, width));
  ops::copy_into(ctx, values, both.slice(2, width, 2 * width));
  return both;
}

Tensor attended_before(Context& ctx, const Tensor& queries, const Tensor& keys,
                       const Tensor& values, std::int64_t seen, const ScoreRules& rules) {
  const std::int64_t heads = queries.size(2), kv_heads = keys.size(2), length = queries.size(1),
                     times = heads / kv_heads;
  const Tensor bias = rules.groups ? group_bias(ctx, rules.groups, rules.window)
                      : rules.window > 0 && length > rules.window
                          ? window_bias(ctx, length, rules.window)
                          : Tensor();
  const Tensor k = times == 1 ? keys : repeated(ctx, blocks::join_heads(keys), kv_heads, times),
               v = repeated(ctx, values, kv_heads, times);
  if (seen == length)
    return blocks::join_heads(ops::attention(ctx, queries, k, v, bias, rules.scale,
                                             rules.groups ? ops::Mask::none : ops::Mask::causal,
                                             rules.cap));
  const auto part = [](const Tensor& x, std::int64_t begin, std::int64_t end) {
    return x.slice(1, begin, end);
  };
  const Tensor seen_keys = part(k, 0, seen), seen_values = part(v, 0, seen);
  const Tensor all = ctx.make({queries.size(0), length, heads, v.size(3)});
  ops::attention_into(ctx, part(queries, 0, seen), seen_keys, seen_values, {}, rules.scale,
                      ops::Mask::causal, part(all, 0, seen), rules.cap);
  ops::attention_into(ctx, part(queries, seen, length), seen_keys, seen_values, {}, rules.scale,
                      ops::Mask::none, part(all, seen, length), rules.cap);
  return blocks::join_heads(all);
}

// Queries that share keys are rows of one attention, so that no key is repeated.
Tensor attended_by_one(Context& ctx, const Tensor& queries, const Tensor& own,
                       const TokensBefore& before, const ScoreRules& rules) {
  if (queries.size(1) != 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "a language model that is given what it kept writes one token at a time, not " +
                    std::to_string(queries.size(1)));
  const std::int64_t count = before.states.size(1), heads = queries.size(2), head = queries.size(3),
                     kv_heads = before.kv_heads, times = heads / kv_heads, width = own.size(2) / 2;
  const Tensor all = ctx.make({1, count + 1, 2 * width});
  ops::copy_into(ctx, before.states, all.slice(1, 0, count));
  ops::copy_into(ctx, own, all.slice(1, count, count + 1));
  const Tensor bias = ctx.make({1, 1, times, count + 1}, HEDDLE_F32);
  for (std::int64_t i = 0; i < times; ++i)
    ops::copy_into(ctx, before.hidden.reshape({1, 1, 1, count + 1}), bias.slice(2, i, i + 1));
  const Tensor rows =
      ops::contiguous(ctx, queries.reshape({1, kv_heads, times, head}).permute({0, 2, 1, 3}));
  const Tensor out =
      ops::attention(ctx, rows, blocks::split_heads(all.slice(2, 0, width), kv_heads),
                     blocks::split_heads(all.slice(2, width, 2 * width), kv_heads), bias,
                     rules.scale, ops::Mask::none, rules.cap);
  return ops::contiguous(ctx, out.permute({0, 2, 1, 3})).reshape({1, 1, heads * head});
}

}  // namespace heddle::encoders
