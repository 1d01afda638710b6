#include "op_check.h"

#include <algorithm>
#include <cmath>

#include "op_operands.h"

namespace heddle::cpu {

using namespace operands;

void check_copy(const heddle_op_call& call) {
  const heddle_tensor_info& in = need(call, 0, "in", Elements::kAny);
  require_same(result(call, 0, "out", Elements::kAny), "out", in);
}

void check_fill(const heddle_op_call& call) {
  device::attributes<heddle_fill_attrs>(call);
  result(call, 0, "out", Elements::kAny);
}

void check_broadcast(const heddle_op_call& call) {
  const heddle_tensor_info& out = result(call);
  const heddle_tensor_info &a = need(call, 0, "a"), &b = need(call, 1, "b");
  require_broadcasts(a, "a", out);
  require_broadcasts(b, "b", out);
  for (std::uint32_t axis = 0; axis < out.rank; ++axis)
    require(out.shape[axis] == (a.shape[axis] == 1 ? b.shape[axis] : a.shape[axis]), "out is ",
            describe(out), ", larger than a ", describe(a), " and b ", describe(b),
            " broadcast to");
}

void check_combine(const heddle_op_call& call) {
  device::attributes<heddle_combine_attrs>(call);
  const heddle_tensor_info& out = result(call);
  require(call.in_count <= 4, "combine takes at most 4 operands, got ", call.in_count);
  require_same(need(call, 0, "x0"), "x0", out);
  for (std::uint32_t i = 1; i < call.in_count; ++i)
    if (const heddle_tensor_info* x = maybe(call, i, "x")) require_same(*x, "x", out);
}

void check_scale_clamp(const heddle_op_call& call) {
  device::attributes<heddle_scale_clamp_attrs>(call);
  require_same(need(call, 0, "x"), "x", result(call));
}

void check_activation(const heddle_op_call& call) {
  require_activation(device::attributes<heddle_activation_attrs>(call).kind);
  require_same(need(call, 0, "x"), "x", result(call));
}

void check_leaky_relu(const heddle_op_call& call) {
  device::attributes<heddle_leaky_relu_attrs>(call);
  const heddle_tensor_info& out = result(call);
  require_same(need(call, 0, "x"), "x", out);
  if (const heddle_tensor_info* slope = maybe(call, 1, "slope"))
    require_broadcasts(*slope, "slope", out);
}

void check_rsqrt(const heddle_op_call& call) {
  require_same(need(call, 0, "x"), "x", result(call));
}

void check_gated_activation(const heddle_op_call& call) {
  require_activation(device::attributes<heddle_activation_attrs>(call).kind);
  const heddle_tensor_info& out = result(call);
  require_same(need(call, 0, "a"), "a", out);
  require_same(need(call, 1, "b"), "b", out);
}

void check_layer_norm(const heddle_op_call& call) {
  device::attributes<heddle_norm_attrs>(call);
  const heddle_tensor_info& x = need(call, 0, "x");
  const std::int64_t d = last_size(x, "x");
  require_optional(maybe(call, 1, "weight"), "weight", {d});
  require_optional(maybe(call, 2, "bias"), "bias", {d});
  require_same(result(call), "out", x);
}

void check_rms_norm(const heddle_op_call& call) {
  device::attributes<heddle_norm_attrs>(call);
  const heddle_tensor_info& x = need(call, 0, "x");
  require_optional(maybe(call, 1, "weight"), "weight", {last_size(x, "x")});
  require_same(result(call), "out", x);
}

void check_modulated_norm(const heddle_op_call& call) {
  device::attributes<heddle_norm_attrs>(call);
  const heddle_tensor_info& x = need(call, 0, "x");
  require_rank(x, "x", 3);
  require_per_item(need(call, 1, "shift"), "shift", x);
  require_per_item(need(call, 2, "scale"), "scale", x);
  require_same(result(call), "out", x);
}

void check_gated_add(const heddle_op_call& call) {
  const heddle_tensor_info& x = need(call, 0, "x");
  require_rank(x, "x", 3);
  require_per_item(need(call, 1, "gate"), "gate", x);
  require_same(need(call, 2, "y"), "y", x);
  require_same(result(call), "out", x);
}

void check_norm_rope(const heddle_op_call& call) {
  device::attributes<heddle_norm_attrs>(call);
  const heddle_tensor_info& x = need(call, 0, "x");
  require_rank(x, "x", 4);
  const std::int64_t d = x.shape[3];
  require_optional(maybe(call, 1, "weight"), "weight", {d});
  const heddle_tensor_info* cos = maybe(call, 2, "cos", Elements::kF32);
  const heddle_tensor_info* sin = maybe(call, 3, "sin", Elements::kF32);
  require((cos == nullptr) == (sin == nullptr),
          "one of cos and sin is missing; both or none have to be there");
  require(cos == nullptr || d % 2 == 0, "x is ", describe(x),
          "; its last axis has to be even to be rotated in pairs");
  require_optional(cos, "cos", {x.shape[1], d / 2});
  require_optional(sin, "sin", {x.shape[1], d / 2});
  require_same(result(call), "out", x);
}

void check_rope_table(const heddle_op_call& call) {
  const auto& attrs = device::attributes<heddle_rope_table_attrs>(call);
  const heddle_tensor_info& ids = need(call, 0, "ids", Elements::kF32);
  require_rank(ids, "ids", 2);
  require(attrs.axes >= 1 && attrs.axes <= 4 && attrs.axes == ids.shape[1], "ids is ",
          describe(ids), ", the attributes have ", attrs.axes,
          " axes; both have to be equal and at most 4");
  std::int64_t pairs = 0;
  for (int a = 0; a < attrs.axes; ++a) {
    require(attrs.dim[a] >= 0 && attrs.dim[a] % 2 == 0, "dim[", a, "] is ", attrs.dim[a],
            ", has to be even and not negative");
    pairs += attrs.dim[a] / 2;
  }
  require_shape(result(call, 0, "cos", Elements::kF32), "cos", {ids.shape[0], pairs});
  require_shape(result(call, 1, "sin", Elements::kF32), "sin", {ids.shape[0], pairs});
}

void check_grid_ids(const heddle_op_call& call) {
  const auto& attrs = device::attributes<heddle_grid_ids_attrs>(call);
  for (const std::int64_t size : attrs.size) require(size >= 0, "a size of the grid is ", size);
  require_shape(result(call, 0, "out", Elements::kF32), "out",
                {attrs.size[0] * attrs.size[1] * attrs.size[2], 3});
}

void check_timestep_embedding(const heddle_op_call& call) {
  const auto& attrs = device::attributes<heddle_timestep_embedding_attrs>(call);
  const heddle_tensor_info& t = need(call, 0, "t", Elements::kF32);
  require_rank(t, "t", 1);
  const heddle_tensor_info& out = result(call);
  require(out.rank == 2 && out.shape[0] == t.shape[0] && out.shape[1] % 2 == 0, "out is ",
          describe(out), ", has to be (", t.shape[0], ", an even number)");
  const double half = static_cast<double>(out.shape[1] / 2);
  require(half > attrs.shift || out.shape[1] == 0, "shift is ", attrs.shift,
          ", has to be less than half of ", out.shape[1]);
  require(attrs.max_period > 0, "max_period is ", attrs.max_period, ", has to be positive");
}

void check_embedding(const heddle_op_call& call) {
  const heddle_tensor_info& table = need(call, 0, "table", Elements::kStored);
  require_rank(table, "table", 2);
  const heddle_tensor_info& ids = need(call, 1, "ids", Elements::kIds);
  const heddle_tensor_info& out = result(call);
  require(out.rank == ids.rank + 1 && std::equal(ids.shape, ids.shape + ids.rank, out.shape) &&
              out.shape[ids.rank] == table.shape[1],
          "out is ", describe(out), ", has to be the shape of ids ", describe(ids),
          " and the width of table ", describe(table));
}

void check_relative_bucket(const heddle_op_call& call) {
  const auto& attrs = device::attributes<heddle_relative_bucket_attrs>(call);
  require_rank(result(call, 0, "out", Elements::kI32), "out", 2);
  const std::int32_t one_way = attrs.bidirectional != 0 ? attrs.buckets / 2 : attrs.buckets;
  require(one_way >= 2 && attrs.max_distance > one_way / 2, "buckets is ", attrs.buckets,
          " and max_distance ", attrs.max_distance,
          "; each direction needs 2 buckets, and the distance has to pass the exact half");
}

void check_attention(const heddle_op_call& call) {
  const float cap = device::attributes<heddle_attention_attrs>(call).cap;
  require(cap >= 0 && std::isfinite(cap), "cap is ", cap, "; 0 for none, or a positive number");
  const heddle_tensor_info &q = need(call, 0, "q"), &k = need(call, 1, "k"),
                           &v = need(call, 2, "v");
  require_rank(q, "q", 4);
  require_rank(k, "k", 4);
  require_rank(v, "v", 4);
  require_shape(k, "k", {q.shape[0], k.shape[1], q.shape[2], q.shape[3]});
  require_shape(v, "v", {q.shape[0], k.shape[1], q.shape[2], v.shape[3]});
  if (const heddle_tensor_info* bias = maybe(call, 3, "bias")) {
    require(bias->rank == 4 && (bias->shape[0] == q.shape[0] || bias->shape[0] == 1) &&
                (bias->shape[1] == q.shape[2] || bias->shape[1] == 1) &&
                bias->shape[2] == q.shape[1] && bias->shape[3] == k.shape[1],
            "bias is ", describe(*bias), ", has to be (", q.shape[0], " or 1, ", q.shape[2],
            " or 1, ", q.shape[1], ", ", k.shape[1], ")");
  }
  require_shape(result(call), "out", {q.shape[0], q.shape[1], q.shape[2], v.shape[3]});
}

void check_linear(const heddle_op_call& call) {
  require_activation(device::attributes<heddle_activation_attrs>(call).kind);
  const heddle_tensor_info& x = need(call, 0, "x");
  const heddle_tensor_info& weight = need(call, 1, "weight", Elements::kStored, Layout::kAny);
  require_rank(weight, "weight", 2);
  require(last_size(x, "x") == weight.shape[1], "x is ", describe(x), " and weight ",
          describe(weight), "; their last axes have to be equal");
  const std::int64_t n = weight.shape[0];
  require_optional(maybe(call, 2, "bias"), "bias", {n});
  heddle_tensor_info expected = x;
  expected.shape[x.rank - 1] = n;
  if (const heddle_tensor_info* residual = maybe(call, 3, "residual"))
    require_same(*residual, "residual", expected);
  require_same(result(call), "out", expected);
}

}  // namespace heddle::cpu
