// The cases of products whose operands may be rounded to 8 bits. Their numbers are such that
// rounding changes none: those of a row are numbers of f8_e4m3 times a power of two, and the
// largest is the largest one of the type times that. So every kernel, in 8 bits or not, has to give
// what the reference gives. What rounding does is tested in fp8_test.cpp.
#include <cmath>

#include "heddle/device.hpp"
#include "op_cases.h"

namespace heddle::conformance {

namespace {

// Rows along the last axis; 448 * 2^exponent is the largest of each.
HostTensor exact_rows(Random& random, HostTensor tensor, int least_exponent) {
  const std::int64_t width = tensor.info().shape[tensor.info().rank - 1];
  const HostTensor small = filled(random, HostTensor(HEDDLE_F8_E4M3, {tensor.count()}), 100);
  for (std::int64_t row = 0; row < tensor.count() / std::max<std::int64_t>(1, width); ++row) {
    const int exponent = least_exponent + static_cast<int>(random() % 3);
    const auto largest = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(width));
    for (std::int64_t i = 0; i < width; ++i) {
      const double value = i == largest ? -448 : small.get(row * width + i);
      tensor.set(row * width + i, std::ldexp(value, exponent));
    }
  }
  return tensor;
}

}  // namespace

void add_fp8_cases(Random& random, std::vector<OpCase>& cases) {
  struct Case {
    Shape x;
    std::int64_t n;
    heddle_dtype in, weight, out;
    heddle_activation kind = HEDDLE_ACT_NONE;
    bool bias = true, residual = false;
  };
  std::vector<Case> table = {
      {{2, 70, 256}, 192, HEDDLE_BF16, HEDDLE_BF16, HEDDLE_BF16},
      {{1, 130, 512}, 320, HEDDLE_BF16, HEDDLE_F32, HEDDLE_F32},
      {{1, 130, 512}, 320, HEDDLE_BF16, HEDDLE_BF16, HEDDLE_F32, HEDDLE_ACT_NONE, false, true},
      {{2, 33, 256}, 384, HEDDLE_BF16, HEDDLE_BF16, HEDDLE_BF16, HEDDLE_ACT_GELU_TANH},
      {{3, 20, 128}, 64, HEDDLE_BF16, HEDDLE_F64, HEDDLE_BF16, HEDDLE_ACT_SILU, true, true},
      {{77, 96}, 80, HEDDLE_F16, HEDDLE_F16, HEDDLE_F16, HEDDLE_ACT_RELU},
      {{2, 3, 5, 64}, 48, HEDDLE_BF16, HEDDLE_BF16, HEDDLE_F16, HEDDLE_ACT_NONE, false},
      // Not for products in 8 bits: operands of 32 bits, lengths that are no multiples of 16.
      {{2, 40, 256}, 192, HEDDLE_F32, HEDDLE_BF16, HEDDLE_F32},
      {{2, 21, 72}, 45, HEDDLE_BF16, HEDDLE_BF16, HEDDLE_BF16},
      {{5, 7}, 3, HEDDLE_BF16, HEDDLE_F32, HEDDLE_F32},
      {{0, 16}, 16, HEDDLE_BF16, HEDDLE_BF16, HEDDLE_BF16},
  };
  for (const Case& one : table) {
    Shape out_shape = one.x;
    out_shape.back() = one.n;
    OpCase made{.name = "",
                .op = HEDDLE_OP_LINEAR,
                .in = {exact_rows(random, HostTensor::slice(one.in, one.x, 8), -6),
                       exact_rows(random, HostTensor(one.weight, {one.n, one.x.back()}), -12),
                       std::nullopt, std::nullopt},
                .out = {HostTensor::slice(one.out, out_shape, 8)},
                .attrs = bytes_of(heddle_activation_attrs{one.kind}),
                .weight = OpCase::Weight{1, HEDDLE_USE_LINEAR_FP8}};
    made.name = device::cat(HEDDLE_OP_LINEAR, " fp8 ", device::describe(made.in[0]->info()), " by ",
                            device::describe(made.in[1]->info()), " to ",
                            device::dtype_name(one.out), ", activation ", one.kind,
                            one.bias ? ", bias" : "", one.residual ? ", residual" : "");
    if (one.bias) made.in[2] = filled(random, HostTensor(HEDDLE_F32, {one.n}));
    if (one.residual) made.in[3] = filled(random, HostTensor::slice(one.out, out_shape, 8));
    made.item_inputs =
        one.residual ? std::vector<std::uint32_t>{0, 3} : std::vector<std::uint32_t>{0};
    cases.push_back(std::move(made));
  }
}

}  // namespace heddle::conformance
