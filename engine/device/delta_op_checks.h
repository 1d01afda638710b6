// The catalogue's checks of the ops of abi/delta_ops.h. Pure; any thread.
#pragma once

#include "engine/device/examined_call.h"
#include "heddle/abi/delta_ops.h"

namespace heddle::engine {

inline void check_gated_delta_rule(const Examined& e) {
  e.operands(5, 6, 2);
  const auto &qk = *e.in(0), &v = *e.in(1), &gates = *e.in(2), &state = e.out(1);
  e.rank(qk, 4, "queries and keys");
  e.rank(v, 4, "values");
  e.rank(gates, 3, "gates");
  e.rank(state, 4, "state");
  e.same(v, e.out(), "the values' and the output's shape");
  const std::int64_t items = v.shape[0], tokens = v.shape[1], heads = v.shape[2];
  e.require(qk.shape[0] == items && qk.shape[1] == tokens,
            "queries and keys are of other tokens than values");
  e.require(qk.shape[2] > 0 && qk.shape[2] % 2 == 0 && heads % (qk.shape[2] / 2) == 0,
            "the heads of values are no multiple of those of queries");
  e.require(gates.shape[0] == items && gates.shape[1] == tokens && gates.shape[2] == 2 * heads,
            "gates are not two numbers for each token and head");
  e.vector(3, heads, "rate");
  e.vector(4, heads, "shift");
  e.require(state.shape[0] == items && state.shape[1] == heads && state.shape[2] == qk.shape[3] &&
                state.shape[3] == v.shape[3],
            "the state is not a matrix of keys' by values' elements for each head");
  e.require(state.dtype == HEDDLE_F32, "the state is not f32");
  if (const auto* before = e.in(5)) {
    e.same(*before, state, "the shapes of the states");
    e.require(before->dtype == HEDDLE_F32, "the state before is not f32");
  }
  e.attrs<heddle_gated_delta_rule_attrs>();
}

// Its FLOPs. REQUIRES: a call that is checked.
inline double gated_delta_rule_flops(const heddle_op_call& call) {
  // Each token decays an element, has the key read it, adds to it, and has the query read it.
  constexpr double kOperations = 7;
  return kOperations * double(call.in[1]->info.shape[1]) * double(element_count(call.out[1]->info));
}

}  // namespace heddle::engine
