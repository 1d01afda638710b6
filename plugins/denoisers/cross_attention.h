// plugins/denoisers/cross_attention.h - the attention of one stream of tokens to another, on one
// device or on a group that has some of the tokens of both each. Used in blocks, as they are
// traced; any thread.
#pragma once

#include <cstdint>

#include <heddle/node.hpp>

namespace heddle::denoisers {

// What the asking tokens see of the others: q (B, l, H d) and kv (B, m, 2 H d), keys, then values,
// of this device's tokens -> (B, l, H, d). Either goes to the other devices, whichever is less: all
// have the keys and values of all, or tokens and heads change places and back. Throws where there
// are fewer heads than devices.
Tensor attend_across(Context& ctx, const Tensor& q, const heddle_shard& asking, const Tensor& kv,
                     const heddle_shard& others, std::int64_t heads);

}  // namespace heddle::denoisers
