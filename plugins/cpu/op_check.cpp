#include "op_check.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <span>

namespace heddle::cpu {

namespace {

using device::describe;

template <class... Parts>
void require(bool holds, const Parts&... parts) {
  if (!holds) device::fail(HEDDLE_INVALID_ARGUMENT, parts...);
}

enum class Elements { kFloat, kStored, kAny, kF32, kI32, kIds };
enum class Layout { kStrided, kAny };

bool has_elements(heddle_dtype dtype, Elements elements) {
  switch (elements) {
    case Elements::kFloat:
      return device::is_compute_float(dtype);
    case Elements::kStored:
      return device::is_compute_float(dtype) || device::is_f8(dtype) ||
             device::is_block_format(dtype);
    case Elements::kF32:
      return dtype == HEDDLE_F32;
    case Elements::kI32:
      return dtype == HEDDLE_I32;
    case Elements::kIds:
      return dtype == HEDDLE_I32 || dtype == HEDDLE_I64;
    case Elements::kAny:
      break;
  }
  return device::dtype_bytes(dtype) != 0;
}

const char* wanted(Elements elements) {
  switch (elements) {
    case Elements::kFloat:
      return "f32, f16 or bf16";
    case Elements::kStored:
      return "f32, f16, bf16, of 8 bits or in blocks";
    case Elements::kF32:
      return "f32";
    case Elements::kI32:
      return "i32";
    case Elements::kIds:
      return "i32 or i64";
    case Elements::kAny:
      break;
  }
  return "a known element type";
}

const heddle_tensor_info& checked(const heddle_view& view, const char* name, Elements elements,
                                  Layout layout) {
  const heddle_tensor_info& info = view.info;
  require(info.rank <= HEDDLE_MAX_RANK, name, " has rank ", info.rank, ", at most ",
          int{HEDDLE_MAX_RANK}, " is possible");
  for (std::uint32_t axis = 0; axis < info.rank; ++axis)
    require(info.shape[axis] >= 0, name, " has the shape ", describe(info));
  require(has_elements(info.dtype, elements), name, " is ", describe(info), ", has to be ",
          wanted(elements));
  require(view.data != nullptr || device::element_count(info) == 0, name, " ", describe(info),
          " has no memory");
  if (layout == Layout::kAny && info.layout != 0) return info;
  require(info.layout == 0, name, " is ", describe(info), ": this op cannot read a packed weight");
  if ((elements == Elements::kFloat || elements == Elements::kStored) && info.rank > 0) {
    const std::uint32_t last = info.rank - 1;
    require(info.stride[last] == 1 || info.shape[last] <= 1, name, " ", describe(info),
            " has stride ", info.stride[last], " along its last axis, has to have 1");
  }
  return info;
}

const heddle_tensor_info* maybe(const heddle_op_call& call, std::uint32_t index, const char* name,
                                Elements elements = Elements::kFloat) {
  const heddle_view* view = device::operand(call, index);
  return view == nullptr ? nullptr : &checked(*view, name, elements, Layout::kStrided);
}

const heddle_tensor_info& need(const heddle_op_call& call, std::uint32_t index, const char* name,
                               Elements elements = Elements::kFloat,
                               Layout layout = Layout::kStrided) {
  const heddle_view* view = device::operand(call, index);
  require(view != nullptr, "operand ", name, " is missing");
  return checked(*view, name, elements, layout);
}

const heddle_tensor_info& result(const heddle_op_call& call, std::uint32_t index = 0,
                                 const char* name = "out", Elements elements = Elements::kFloat) {
  require(index < call.out_count && call.out[index] != nullptr, "output ", name, " is missing");
  return checked(*call.out[index], name, elements, Layout::kStrided);
}

void require_rank(const heddle_tensor_info& info, const char* name, std::uint32_t rank) {
  require(info.rank == rank, name, " is ", describe(info), ", has to have rank ", rank);
}

void require_shape(const heddle_tensor_info& info, const char* name,
                   std::span<const std::int64_t> shape) {
  const bool equal =
      info.rank == shape.size() && std::equal(shape.begin(), shape.end(), info.shape);
  if (equal) return;
  const auto expected =
      device::row_major(info.dtype, shape.data(), static_cast<std::uint32_t>(shape.size()));
  require(false, name, " is ", describe(info), ", has to be ", describe(expected));
}

void require_shape(const heddle_tensor_info& info, const char* name,
                   std::initializer_list<std::int64_t> shape) {
  require_shape(info, name, std::span<const std::int64_t>(shape.begin(), shape.size()));
}

void require_same(const heddle_tensor_info& info, const char* name,
                  const heddle_tensor_info& other) {
  require_shape(info, name, std::span<const std::int64_t>(other.shape, other.rank));
}

void require_optional(const heddle_tensor_info* info, const char* name,
                      std::initializer_list<std::int64_t> shape) {
  if (info != nullptr) require_shape(*info, name, shape);
}

// Each axis equal to that of whole, or 1.
void require_broadcasts(const heddle_tensor_info& info, const char* name,
                        const heddle_tensor_info& whole) {
  bool fits = info.rank == whole.rank;
  for (std::uint32_t axis = 0; fits && axis < whole.rank; ++axis)
    fits = info.shape[axis] == whole.shape[axis] || info.shape[axis] == 1;
  require(fits, name, " is ", describe(info), ", which does not broadcast to ", describe(whole));
}

void require_activation(heddle_activation kind) {
  require(kind >= HEDDLE_ACT_NONE && kind <= HEDDLE_ACT_TANH, "activation ", kind, " is unknown");
}

std::int64_t last_size(const heddle_tensor_info& info, const char* name) {
  require(info.rank >= 1, name, " is ", describe(info), ", has to have at least one axis");
  return info.shape[info.rank - 1];
}

// (B|1, 1, D)
void require_per_item(const heddle_tensor_info& info, const char* name,
                      const heddle_tensor_info& x) {
  require(info.rank == 3 && (info.shape[0] == x.shape[0] || info.shape[0] == 1) &&
              info.shape[1] == 1 && info.shape[2] == x.shape[2],
          name, " is ", describe(info), ", has to be (", x.shape[0], " or 1, 1, ", x.shape[2], ")");
}

}  // namespace

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

namespace {

// The height and width that come out of x under a filter.
std::pair<std::int64_t, std::int64_t> filtered(const heddle_conv2d_attrs& attrs,
                                               const heddle_tensor_info& x,
                                               const heddle_tensor_info& weight,
                                               const std::int64_t* filter) {
  std::int64_t size[2];
  for (int axis = 0; axis < 2; ++axis) {
    const std::int64_t before = attrs.padding[axis], after = attrs.padding[axis + 2];
    require(attrs.stride[axis] >= 1 && before >= 0 && after >= 0, "stride is (", attrs.stride[0],
            ", ", attrs.stride[1], "), padding (", attrs.padding[0], ", ", attrs.padding[1], ", ",
            attrs.padding[2], ", ", attrs.padding[3],
            "); strides have to be positive and padding not negative");
    const std::int64_t room = x.shape[1 + axis] + before + after - filter[axis];
    require(room >= 0, "the filter ", describe(weight), " is larger than the padded x ",
            describe(x));
    size[axis] = room / attrs.stride[axis] + 1;
  }
  return {size[0], size[1]};
}

}  // namespace

void check_conv2d(const heddle_op_call& call) {
  const auto& attrs = device::attributes<heddle_conv2d_attrs>(call);
  const heddle_tensor_info& x = need(call, 0, "x");
  const heddle_tensor_info& weight = need(call, 1, "weight", Elements::kFloat, Layout::kAny);
  require_rank(x, "x", 4);
  require_rank(weight, "weight", 4);
  require(x.shape[3] == weight.shape[1], "x is ", describe(x), " (N, H, W, C) and weight ",
          describe(weight), " (O, C, R, S); C has to be equal");
  const auto [height, width] = filtered(attrs, x, weight, weight.shape + 2);
  const std::initializer_list<std::int64_t> expected = {x.shape[0], height, width, weight.shape[0]};
  require_optional(maybe(call, 2, "bias"), "bias", {weight.shape[0]});
  require_optional(maybe(call, 3, "residual"), "residual", expected);
  require_shape(result(call), "out", expected);
}

void check_depthwise_conv2d(const heddle_op_call& call) {
  const auto& attrs = device::attributes<heddle_conv2d_attrs>(call);
  const heddle_tensor_info& x = need(call, 0, "x");
  const heddle_tensor_info& weight = need(call, 1, "weight");
  require_rank(x, "x", 4);
  require_rank(weight, "weight", 3);
  require(x.shape[3] == weight.shape[2], "x is ", describe(x), " (N, H, W, C) and weight ",
          describe(weight), " (R, S, C); C has to be equal");
  const auto [height, width] = filtered(attrs, x, weight, weight.shape);
  require_optional(maybe(call, 2, "bias"), "bias", {x.shape[3]});
  require_shape(result(call), "out", {x.shape[0], height, width, x.shape[3]});
}

void check_group_norm(const heddle_op_call& call) {
  const auto& attrs = device::attributes<heddle_group_norm_attrs>(call);
  require_activation(attrs.activation);
  const heddle_tensor_info& x = need(call, 0, "x");
  require_rank(x, "x", 4);
  require(attrs.groups >= 1 && x.shape[3] % attrs.groups == 0, "x is ", describe(x),
          ", its last axis does not divide into ", attrs.groups, " groups");
  require_shape(need(call, 1, "weight"), "weight", {x.shape[3]});
  require_shape(need(call, 2, "bias"), "bias", {x.shape[3]});
  require_same(result(call), "out", x);
}

void check_upsample_nearest(const heddle_op_call& call) {
  const heddle_tensor_info& x = need(call, 0, "x");
  const heddle_tensor_info& out = result(call);
  require_rank(x, "x", 4);
  require_rank(out, "out", 4);
  const auto whole = [&](int axis) {
    return x.shape[axis] == 0 ? out.shape[axis] == 0
                              : out.shape[axis] > 0 && out.shape[axis] % x.shape[axis] == 0;
  };
  require(out.shape[0] == x.shape[0] && whole(1) && whole(2) && out.shape[3] == x.shape[3],
          "out is ", describe(out), ", has to be x ", describe(x),
          " with height and width times whole numbers");
}

}  // namespace heddle::cpu
