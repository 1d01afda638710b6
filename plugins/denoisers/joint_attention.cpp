#include "joint_attention.h"

#include <cmath>

#include <heddle/ops.hpp>

namespace heddle::denoisers {
namespace {

// Rows of queries, of all heads together, that a large GPU's multiprocessors take in one round: 132
// of them, 128 rows each. An attention over fewer takes no less time.
constexpr std::int64_t kRowsOfARound = 132 * 128;

}  // namespace

JointShard joint_shard(Context& ctx, std::int64_t before, std::int64_t total, std::int64_t heads) {
  const heddle_group group = ctx.group();
  if (group.kind != HEDDLE_GROUP_SEQUENCE) return {before, total, 0, heads};
  const std::int64_t first = heads * group.rank / group.count,
                     last = heads * (group.rank + 1) / group.count;
  if (first == last)
    throw Error(HEDDLE_INVALID_ARGUMENT, std::to_string(heads) + " heads cannot be divided among " +
                                             std::to_string(group.count) +
                                             " devices. Use fewer devices.");
  return {before, total, first, last - first};
}

Tensor make_gathered(Context& ctx, const Tensor& own, const JointShard& shard, std::int64_t heads) {
  if (ctx.group().kind != HEDDLE_GROUP_SEQUENCE) return own;
  return ctx.make({own.size(0), shard.total, own.size(2) / heads * shard.heads}, own.dtype());
}

void gather_tokens(Context& ctx, const Tensor& qkv, std::int64_t begin, const JointShard& shard,
                   std::int64_t heads, const Tensor& gathered) {
  if (ctx.group().kind != HEDDLE_GROUP_SEQUENCE) return;
  const std::int64_t head = qkv.size(2) / (3 * heads);
  const heddle_all_to_all_attrs to_heads{shard.first_head, shard.first_head + shard.heads,
                                         shard.before + begin, 3, 1};
  ops::all_to_all_into(ctx, qkv.reshape({qkv.size(0), qkv.size(1), 3, heads, head}), to_heads,
                       gathered.reshape({gathered.size(0), shard.total, 3, shard.heads, head}));
}

// The others' tokens are computed first, and are on their way while its own are, but where two
// attentions would take more rounds than one.
void attend(Context& ctx, const Tensor& qkv, const JointShard& shard, const Tensor& out,
            const RowAttention& attention) {
  const Tensor q = part_of_heads(qkv, 0, shard.heads), k = part_of_heads(qkv, 1, shard.heads),
               v = part_of_heads(qkv, 2, shard.heads);
  const double scale = 1 / std::sqrt(double(q.size(3)));
  const auto attend_to = [&](const Tensor& rows, const Tensor& to, std::int64_t first) {
    if (attention) return attention(rows, k, v, first, to);
    ops::attention_into(ctx, rows, k, v, {}, scale, ops::Mask::none, to);
  };
  const heddle_group group = ctx.group();
  if (group.kind != HEDDLE_GROUP_SEQUENCE) return attend_to(tokens(q, {0, out.size(1)}), out, 0);
  const Range own{shard.before, shard.before + out.size(1)};
  heddle_all_to_all_attrs to_tokens{own.begin, own.end, shard.first_head, 1, 2};
  const Tensor attended = ctx.make(q.shape(), q.dtype());
  if (group.count > 2 && out.size(0) * out.size(1) * shard.heads < kRowsOfARound) {
    attend_to(q, attended, 0);
    return ops::all_to_all_into(ctx, attended, to_tokens, out);
  }
  for (const Range others : {Range{0, own.begin}, Range{own.end, shard.total}})
    if (others.begin < others.end)
      attend_to(tokens(q, others), tokens(attended, others), others.begin);
  to_tokens.keeps_own = 1;
  ops::all_to_all_into(ctx, attended, to_tokens, out);
  attend_to(tokens(q, own), out.slice(2, shard.first_head, shard.first_head + shard.heads),
            own.begin);
}

}  // namespace heddle::denoisers
