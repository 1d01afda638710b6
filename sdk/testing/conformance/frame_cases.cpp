// Cases of the ops of abi/frame_ops.h: odd sizes, strides along each axis, padding before the first
// frame, few channels, slices of larger tensors, and calls large enough for a library.
#include <heddle/abi/frame_ops.h>

#include <cmath>

#include "heddle/device.hpp"
#include "op_cases.h"

namespace heddle::conformance {

namespace {

struct FrameCase {
  Shape x, filter;
  heddle_conv3d_attrs attrs;
  heddle_dtype in, weight, out;
  bool bias, residual;
};

constexpr heddle_conv3d_attrs kCausal{{1, 1, 1}, {0, 1, 1, 0, 1, 1}},
    kFirst{{1, 1, 1}, {2, 1, 1, 0, 1, 1}}, kTime{{1, 1, 1}, {0, 0, 0, 0, 0, 0}},
    kHalved{{2, 1, 1}, {0, 0, 0, 0, 0, 0}}, kOdd{{2, 3, 1}, {1, 2, 0, 0, 1, 1}};

std::vector<FrameCase> frame_table() {
  constexpr heddle_dtype kF32 = HEDDLE_F32;
  std::vector<FrameCase> table = {
      {{1, 4, 9, 11, 32}, {48, 32, 3, 3, 3}, kCausal, kF32, HEDDLE_F16, kF32, true, true},
      {{2, 3, 10, 7, 4}, {32, 4, 3, 3, 3}, kFirst, kF32, kF32, kF32, true, false},
      {{1, 5, 6, 8, 24}, {3, 24, 3, 3, 3}, kCausal, kF32, kF32, kF32, true, false},
      {{1, 5, 6, 5, 16}, {32, 16, 3, 1, 1}, kHalved, kF32, kF32, kF32, true, true},
      {{2, 5, 9, 8, 6}, {10, 6, 3, 4, 2}, kOdd, kF32, kF32, kF32, false, true},
      {{1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}, kTime, kF32, kF32, kF32, false, false}};
  for (heddle_dtype type : kFloats)
    for (heddle_dtype out : kFloats)
      table.push_back(
          {{2, 4, 6, 7, 24}, {40, 24, 3, 3, 3}, kCausal, type, HEDDLE_BF16, out, true, true});
  for (heddle_dtype type : {HEDDLE_BF16, HEDDLE_F16}) {
    table.push_back(
        {{1, 6, 17, 40, 80}, {3, 80, 3, 3, 3}, kCausal, type, type, HEDDLE_F32, true, false});
    table.push_back({{1, 1, 33, 40, 64}, {64, 64, 3, 3, 3}, kFirst, type, type, type, true, false});
    table.push_back({{1, 6, 33, 40, 64}, {64, 64, 3, 3, 3}, kCausal, type, type, type, true, true});
    table.push_back(
        {{2, 4, 24, 25, 96}, {72, 96, 3, 3, 3}, kCausal, type, type, type, false, true});
    table.push_back({{1, 6, 40, 36, 96}, {192, 96, 3, 1, 1}, kTime, type, type, type, true, false});
    table.push_back(
        {{1, 9, 40, 36, 96}, {96, 96, 3, 1, 1}, kHalved, type, type, type, true, false});
  }
  return table;
}

}  // namespace

void add_frame_cases(Random& random, std::vector<OpCase>& cases) {
  for (const FrameCase& one : frame_table()) {
    Shape out_shape = one.x;
    out_shape[4] = one.filter[0];
    double terms = static_cast<double>(one.filter[1]);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      terms *= static_cast<double>(one.filter[2 + axis]);
      out_shape[1 + axis] = (one.x[1 + axis] + one.attrs.padding[axis] +
                             one.attrs.padding[3 + axis] - one.filter[2 + axis]) /
                                one.attrs.stride[axis] +
                            1;
    }
    OpCase made{.name = "",
                .op = HEDDLE_OP_CONV3D,
                .in = {filled(random, HostTensor(one.in, one.x)),
                       filled(random, HostTensor(one.weight, one.filter), 1 / std::sqrt(terms)),
                       std::nullopt, std::nullopt},
                .out = {HostTensor(one.out, out_shape)},
                .attrs = bytes_of(one.attrs),
                .weight = OpCase::Weight{1, HEDDLE_USE_CONV2D}};
    made.name =
        device::cat(HEDDLE_OP_CONV3D, " ", device::describe(made.in[0]->info()), " by ",
                    device::describe(made.in[1]->info()), " to ", device::dtype_name(one.out),
                    one.bias ? ", bias" : "", one.residual ? ", residual" : "");
    if (one.bias) made.in[2] = filled(random, HostTensor(HEDDLE_F32, {one.filter[0]}));
    if (one.residual) made.in[3] = filled(random, HostTensor(one.out, out_shape));
    if (one.x[0] > 1)
      made.item_inputs =
          one.residual ? std::vector<std::uint32_t>{0, 3} : std::vector<std::uint32_t>{0};
    cases.push_back(std::move(made));
  }
  cases.push_back({.name = device::cat(HEDDLE_OP_CONV3D, " slices of channels"),
                   .op = HEDDLE_OP_CONV3D,
                   .in = {filled(random, HostTensor::slice(HEDDLE_F32, {1, 4, 8, 8, 16}, 8)),
                          filled(random, HostTensor(HEDDLE_F32, {16, 16, 3, 3, 3}), 0.1),
                          std::nullopt, std::nullopt},
                   .out = {HostTensor::slice(HEDDLE_F32, {1, 2, 8, 8, 16}, 4)},
                   .attrs = bytes_of(kCausal),
                   .weight = OpCase::Weight{1, HEDDLE_USE_CONV2D}});
}

}  // namespace heddle::conformance
