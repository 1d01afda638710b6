// heddle/delta_ops.hpp - one function per op of abi/delta_ops.h, as heddle/ops.hpp has them.
#pragma once

#include "abi/delta_ops.h"
#include "ops.hpp"

namespace [[gnu::visibility("hidden")]] heddle {
namespace ops {

struct DeltaOperands {
  Tensor qk, v, gates, log_rate, shift;
  Tensor before;  // may be empty
};
struct DeltaResults {
  Tensor out, state;  // both f32
};
inline DeltaResults gated_delta_rule(Context& ctx, const DeltaOperands& in,
                                     const heddle_gated_delta_rule_attrs& attrs) {
  static const Op op(HEDDLE_OP_GATED_DELTA_RULE);
  const DeltaResults made{
      ctx.make(in.v.shape(), HEDDLE_F32),
      ctx.make({in.v.size(0), in.v.size(2), in.qk.size(3), in.v.size(3)}, HEDDLE_F32)};
  ctx.op(
      op,
      {in.qk.raw(), in.v.raw(), in.gates.raw(), in.log_rate.raw(), in.shift.raw(), in.before.raw()},
      {made.out.raw(), made.state.raw()}, attrs);
  return made;
}

}  // namespace ops
}  // namespace heddle
