// plugins/denoisers/joint_attention.h - the attention over text and picture together, text first,
// on one device or on a group that has some of the tokens each. Shapes: B batch, l tokens of this
// device, T of all, H heads of size d, H' of them on this device. Used in blocks, as they are
// traced; any thread.
#pragma once

#include <cstdint>
#include <functional>

#include <heddle/node.hpp>

#include "plugins/blocks/heads.h"

namespace heddle::denoisers {

// Tokens [begin, end) of the joint sequence.
struct Range {
  std::int64_t begin, end;
};
inline Tensor tokens(const Tensor& t, Range range) { return t.slice(1, range.begin, range.end); }

// q (0), k (1) or v (2) of qkv (B, l, 3 H d) as (B, l, H, d).
inline Tensor part_of_heads(const Tensor& qkv, int part, std::int64_t heads) {
  const std::int64_t width = qkv.size(2) / 3;
  return blocks::split_heads(qkv.slice(2, part * width, (part + 1) * width), heads);
}

// What of the joint sequence this device has, and of the heads it computes the attention of.
struct JointShard {
  std::int64_t before, total;      // tokens of the devices before this one, of all
  std::int64_t first_head, heads;  // where devices have some of the tokens each
};
// Throws where there are fewer heads than devices.
JointShard joint_shard(Context& ctx, std::int64_t before, std::int64_t total, std::int64_t heads);

// Room for qkv of all tokens with some of the heads, (B, T, 3 H' d). Alone: `own`, which is the
// same.
Tensor make_gathered(Context& ctx, const Tensor& own, const JointShard& shard, std::int64_t heads);

// qkv (B, l, 3 H d) of this device's tokens from `begin` on, with all heads, to where those with
// some of the heads are gathered. Alone they are there.
void gather_tokens(Context& ctx, const Tensor& qkv, std::int64_t begin, const JointShard& shard,
                   std::int64_t heads, const Tensor& gathered);

// Attention of queries, those of the joint sequence from `first` on, to all keys and values.
using RowAttention = std::function<void(const Tensor& q, const Tensor& k, const Tensor& v,
                                        std::int64_t first, const Tensor& out)>;

// Attention over all tokens, of what was gathered; back to this device's tokens with all heads:
// out (B, l, H, d). Alone, qkv may have more rows than out, keys and values of tokens that ask
// nothing. `attention`: instead of the plain one.
void attend(Context& ctx, const Tensor& qkv, const JointShard& shard, const Tensor& out,
            const RowAttention& attention = {});

}  // namespace heddle::denoisers
