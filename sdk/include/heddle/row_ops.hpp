// heddle/row_ops.hpp - one function per op of abi/row_ops.h, as heddle/ops.hpp has them.
#pragma once

#include "abi/row_ops.h"
#include "ops.hpp"

namespace [[gnu::visibility("hidden")]] heddle {
namespace ops {

struct RowMatches {
  Tensor places, kept, moved, to;
};
// Of scores (B, S, D), so many rows of S are moved.
inline RowMatches match_rows(Context& ctx, const Tensor& scores, std::int64_t moved) {
  static const Op op(HEDDLE_OP_MATCH_ROWS);
  const std::int64_t items = scores.size(0), rows = scores.size(1);
  const RowMatches made{ctx.make({items, rows}, HEDDLE_I32),
                        ctx.make({items, rows - moved}, HEDDLE_I32),
                        ctx.make({items, moved}, HEDDLE_I32), ctx.make({items, moved}, HEDDLE_I32)};
  const Tensor best = ctx.make({items, rows}, HEDDLE_F32);
  ctx.op(op, {scores.raw()},
         {made.places.raw(), made.kept.raw(), made.moved.raw(), made.to.raw(), best.raw()});
  return made;
}
inline void merge_rows_into(Context& ctx, const Tensor& base, const Tensor& rows,
                            const RowMatches& matches, const Tensor& out) {
  static const Op op(HEDDLE_OP_MERGE_ROWS);
  ctx.op(op, {base.raw(), rows.raw(), matches.moved.raw(), matches.to.raw()}, {out.raw()});
}

}  // namespace ops
}  // namespace heddle
