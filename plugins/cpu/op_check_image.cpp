// The checks of ops on pictures, (N, H, W, C).
#include <initializer_list>
#include <utility>

#include "op_check.h"
#include "op_operands.h"

namespace heddle::cpu {

using namespace operands;

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

void check_conv3d(const heddle_op_call& call) {
  const auto& attrs = device::attributes<heddle_conv3d_attrs>(call);
  const heddle_tensor_info& x = need(call, 0, "x");
  const heddle_tensor_info& weight = need(call, 1, "weight", Elements::kFloat, Layout::kAny);
  require_rank(x, "x", 5);
  require_rank(weight, "weight", 5);
  require(x.shape[4] == weight.shape[1], "x is ", describe(x), " (N, T, H, W, C) and weight ",
          describe(weight), " (O, C, F, R, S); C has to be equal");
  std::int64_t size[3];
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t before = attrs.padding[axis], after = attrs.padding[axis + 3];
    require(attrs.stride[axis] >= 1 && before >= 0 && after >= 0, "along axis ", axis,
            " the stride is ", attrs.stride[axis], ", the padding (", before, ", ", after,
            "); strides have to be positive and padding not negative");
    const std::int64_t room = x.shape[1 + axis] + before + after - weight.shape[2 + axis];
    require(room >= 0, "the filter ", describe(weight), " is larger than the padded x ",
            describe(x));
    size[axis] = room / attrs.stride[axis] + 1;
  }
  const std::initializer_list<std::int64_t> expected = {x.shape[0], size[0], size[1], size[2],
                                                        weight.shape[0]};
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
