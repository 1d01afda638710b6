// plugins/blocks/grouped_heads.h - keys and values of grouped queries, which several heads share,
// given to each of these. Used in blocks, as they are traced; any thread.
#pragma once

#include <heddle/ops.hpp>

#include "heads.h"

namespace heddle::blocks {

// x (B, S, K d) with each of its K heads `times` times, one behind the other: (B, S, K times, d),
// in the compute type. A view where that is x itself.
inline Tensor for_all_heads(Context& ctx, const Tensor& x, std::int64_t heads, std::int64_t times) {
  const Tensor one = split_heads(x, heads);
  if (times == 1) return one;
  const std::int64_t width = one.size(3);
  const Tensor all = ctx.make({x.size(0), x.size(1), heads, times, width});
  for (std::int64_t i = 0; i < times; ++i)
    ops::copy_into(ctx, one.reshape({x.size(0), x.size(1), heads, 1, width}),
                   all.slice(3, i, i + 1));
  return all.reshape({x.size(0), x.size(1), heads * times, width});
}

}  // namespace heddle::blocks
