#include "cross_attention.h"

#include <cmath>

#include <heddle/ops.hpp>

#include "joint_attention.h"

namespace heddle::denoisers {
namespace {

// q (B, l, H, d), kv (B, m, 2, H, d).
void see_across(Context& ctx, const Tensor& q, const Tensor& kv, const Tensor& out) {
  const auto half = [&](std::int64_t n) {
    return kv.slice(2, n, n + 1).reshape({kv.size(0), kv.size(1), kv.size(3), kv.size(4)});
  };
  ops::attention_into(ctx, q, half(0), half(1), {}, 1 / std::sqrt(double(q.size(3))),
                      ops::Mask::none, out);
}

}  // namespace

Tensor attend_across(Context& ctx, const Tensor& q, const heddle_shard& asking, const Tensor& kv,
                     const heddle_shard& others, std::int64_t heads) {
  const std::int64_t batch = q.size(0), head = q.size(2) / heads;
  const Tensor own_q = blocks::split_heads(q, heads),
               own_kv = kv.reshape({batch, kv.size(1), 2, heads, head}),
               out = ctx.make(own_q.shape());
  const JointShard shard = joint_shard(ctx, asking.begin, asking.total, heads);
  // A device receives the others' 2 m numbers of a channel, or of its heads' 2 (l + m): of n
  // devices the former is less where m (n - 1) < l.
  const bool gathers = others.total * (std::int64_t(ctx.group().count) - 1) <= asking.total;
  if (gathers || ctx.group().kind != HEDDLE_GROUP_SEQUENCE) {
    see_across(ctx, own_q, ops::all_gather(ctx, own_kv, 1, others.begin, others.total), out);
    return out;
  }
  const std::int64_t last_head = shard.first_head + shard.heads;
  const Tensor some_q = ctx.make({batch, asking.total, shard.heads, head}),
               some_kv = ctx.make({batch, others.total, 2, shard.heads, head}),
               seen = ctx.make(some_q.shape());
  ops::all_to_all_into(ctx, own_kv, {shard.first_head, last_head, others.begin, 3, 1}, some_kv);
  ops::all_to_all_into(ctx, own_q, {shard.first_head, last_head, asking.begin, 2, 1}, some_q);
  see_across(ctx, some_q, some_kv, seen);
  ops::all_to_all_into(ctx, seen, {asking.begin, asking.end, shard.first_head, 1, 2}, out);
  return out;
}

}  // namespace heddle::denoisers
