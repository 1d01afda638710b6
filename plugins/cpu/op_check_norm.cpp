#include "op_check_norm.h"

#include "op_operands.h"

namespace heddle::cpu {

using namespace operands;

namespace {

// Of x (B, S, D) (B|1, S|1, D), or absent.
void require_broadcast(const heddle_op_call& call, std::uint32_t number, const char* name,
                       const heddle_tensor_info& x) {
  const heddle_tensor_info* row = maybe(call, number, name);
  if (row == nullptr) return;
  require_rank(*row, name, 3);
  require((row->shape[0] == 1 || row->shape[0] == x.shape[0]) &&
              (row->shape[1] == 1 || row->shape[1] == x.shape[1]) && row->shape[2] == x.shape[2],
          name, " ", describe(*row), " does not broadcast to x ", describe(x));
}

}  // namespace

void check_modulated_rms_norm(const heddle_op_call& call) {
  device::attributes<heddle_norm_attrs>(call);
  const heddle_tensor_info& x = need(call, 0, "x");
  require_rank(x, "x", 3);
  require_broadcast(call, 1, "scale", x);
  require_broadcast(call, 2, "shift", x);
  require_same(result(call), "out", x);
}

void check_norm_rope_half(const heddle_op_call& call) {
  const auto& attrs = device::attributes<heddle_norm_rope_half_attrs>(call);
  const heddle_tensor_info& x = need(call, 0, "x");
  require_rank(x, "x", 4);
  const std::int64_t d = x.shape[3];
  require(attrs.head > 0 && d % attrs.head == 0, "x is ", describe(x),
          "; its last axis has to be a multiple of a head of ", attrs.head);
  require(attrs.pairs > 0 && attrs.pairs <= attrs.head / 2, "a head of ", attrs.head, " has no ",
          attrs.pairs, " pairs");
  const std::int64_t columns = d / attrs.head * attrs.pairs;
  require_optional(maybe(call, 1, "weight"), "weight", {d});
  require_shape(need(call, 2, "cos", Elements::kF32), "cos", {x.shape[1], columns});
  require_shape(need(call, 3, "sin", Elements::kF32), "sin", {x.shape[1], columns});
  require_same(result(call), "out", x);
}

}  // namespace heddle::cpu
