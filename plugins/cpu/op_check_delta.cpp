#include "op_check_delta.h"

#include "op_operands.h"

namespace heddle::cpu {

using namespace operands;

namespace {

// Of each head a matrix, whose rows are dense.
void require_state(const heddle_tensor_info& state, const char* name,
                   std::initializer_list<std::int64_t> shape) {
  require_shape(state, name, shape);
  require(state.stride[3] == 1 || state.shape[3] <= 1, name, " ", describe(state), " has stride ",
          state.stride[3], " along its last axis, has to have 1");
}

}  // namespace

void check_gated_delta_rule(const heddle_op_call& call) {
  const heddle_tensor_info &qk = need(call, 0, "qk"), &v = need(call, 1, "v");
  require_rank(qk, "qk", 4);
  require_rank(v, "v", 4);
  const std::int64_t items = v.shape[0], tokens = v.shape[1], heads = v.shape[2];
  require_shape(qk, "qk", {items, tokens, qk.shape[2], qk.shape[3]});
  require(qk.shape[2] > 0 && qk.shape[2] % 2 == 0 && heads % (qk.shape[2] / 2) == 0, "v is ",
          describe(v), ", whose heads are no multiple of those of queries, qk ", describe(qk));
  require_shape(need(call, 2, "gates"), "gates", {items, tokens, 2 * heads});
  require_shape(need(call, 3, "log_rate"), "log_rate", {heads});
  require_shape(need(call, 4, "shift"), "shift", {heads});
  const std::initializer_list<std::int64_t> states = {items, heads, qk.shape[3], v.shape[3]};
  if (const heddle_tensor_info* before = maybe(call, 5, "before", Elements::kF32))
    require_state(*before, "before", states);
  require_same(result(call), "out", v);
  require_state(result(call, 1, "state", Elements::kF32), "state", states);
  require(call.attrs != nullptr && call.attrs_size == sizeof(heddle_gated_delta_rule_attrs),
          "the attributes have ", call.attrs_size, " bytes, have to have ",
          sizeof(heddle_gated_delta_rule_attrs));
}

}  // namespace heddle::cpu
