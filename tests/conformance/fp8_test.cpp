// Products whose operands are rounded to 8 bits, with numbers that rounding changes: each operand
// has to be rounded as is said of it (plugins/cuda/scaled_fp8.h), or not at all, depending on the
// device and the kernel; so the bounds are those of the sums alone.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include "compare.h"
#include "heddle/device.hpp"
#include "needs.h"
#include "op_cases.h"
#include "settings.h"

namespace heddle::conformance {

BOOST_AUTO_TEST_SUITE(fp8)

namespace {

// Every row of a matrix as numbers of f8_e4m3 times a scale of the row, by the definition.
HostTensor rounded_rows(const HostTensor& from) {
  const std::int64_t rows = from.info().shape[0], columns = from.info().shape[1];
  HostTensor small(HEDDLE_F8_E4M3, {columns}), result(HEDDLE_F64, {rows, columns});
  for (std::int64_t row = 0; row < rows; ++row) {
    float most = 0;
    for (std::int64_t c = 0; c < columns; ++c)
      most = std::max(most, std::fabs(static_cast<float>(from.get(row * columns + c))));
    const float scale = std::max(most / 448, 0x1p-100f), by = 1 / scale;
    for (std::int64_t c = 0; c < columns; ++c) {
      const float value = static_cast<float>(from.get(row * columns + c)) * by;
      small.set(c, value);
      result.set(row * columns + c, small.get(c) * static_cast<double>(scale));
    }
  }
  return result;
}

HostTensor rounded(const HostTensor& from, heddle_dtype dtype) {
  HostTensor result(dtype, {from.info().shape[0], from.info().shape[1]});
  for (std::int64_t i = 0; i < from.count(); ++i) result.set(i, from.get(i));
  return result;
}

HostTensor product(const HostTensor& x, const HostTensor& weight, heddle_dtype dtype) {
  const std::int64_t m = x.info().shape[0], n = weight.info().shape[0], k = x.info().shape[1];
  HostTensor result(dtype, {m, n});
  std::vector<double> left(static_cast<std::size_t>(m * k)), right(static_cast<std::size_t>(n * k));
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = x.get(static_cast<std::int64_t>(i));
  for (std::size_t i = 0; i < right.size(); ++i)
    right[i] = weight.get(static_cast<std::int64_t>(i));
  for (std::int64_t row = 0; row < m; ++row)
    for (std::int64_t column = 0; column < n; ++column) {
      double sum = 0;
      for (std::int64_t i = 0; i < k; ++i)
        sum += left[static_cast<std::size_t>(row * k + i)] *
               right[static_cast<std::size_t>(column * k + i)];
      result.set(row * n + column, sum);
    }
  return result;
}

heddle_weight_layout layout_of(const TestDevice& device, std::int32_t use, heddle_dtype dtype) {
  const heddle_tensor_info info = device::row_major(dtype, {48, 64});
  heddle_weight_layout layout{};
  check(device.desc().weight_layout(device.raw(), use, &info, &layout));
  return layout;
}

}  // namespace

BOOST_AUTO_TEST_CASE(operands_are_rounded_row_by_row_or_not_at_all,
                     *needs_ops({HEDDLE_OP_LINEAR}) * needs_weights(HEDDLE_USE_LINEAR)) {
  const Plugin plugin(settings().plugin);
  const TestDevice device(plugin, settings().options);
  const heddle_dtype compute = device.info().compute;
  // A device without such products stores the matrix as it stores any of that type.
  const bool scales_rows = layout_of(device, HEDDLE_USE_LINEAR_FP8, HEDDLE_F8_E4M3).info.layout !=
                           layout_of(device, HEDDLE_USE_LINEAR, HEDDLE_F8_E4M3).info.layout;
  Random random(settings().seed);
  for (const heddle_dtype file : {HEDDLE_BF16, HEDDLE_F32, HEDDLE_F8_E4M3})
    for (const heddle_dtype out : {HEDDLE_BF16, HEDDLE_F32})
      for (const std::int64_t k : {64, 3072}) {
        const HostTensor x = filled(random, HostTensor(HEDDLE_BF16, {50, k}), 3),
                         weight = filled(random, HostTensor(file, {48, k}), 0.25);
        OpCase op_case{.name = device::cat(device::dtype_name(file), " to ",
                                           device::dtype_name(out), ", ", k, " terms"),
                       .op = HEDDLE_OP_LINEAR,
                       .in = {x, weight, std::nullopt, std::nullopt},
                       .out = {HostTensor(out, {50, 48})},
                       .attrs = bytes_of(heddle_activation_attrs{HEDDLE_ACT_NONE}),
                       .weight = OpCase::Weight{1, HEDDLE_USE_LINEAR_FP8, HEDDLE_F8_E4M3}};
        const HostTensor stored = file == HEDDLE_F8_E4M3 ? weight
                                  : scales_rows          ? rounded_rows(weight)
                                                         : rounded(weight, HEDDLE_F8_E4M3);
        const std::vector<const heddle_kernel*> kernels = device.fitting(op_case);
        BOOST_TEST((!kernels.empty() || !settings().complete), op_case.name << ": no kernel fits");
        for (const heddle_kernel* kernel : kernels) {
          BOOST_TEST_MESSAGE(op_case.name << " by " << kernel->name);
          const bool in_8_bits = std::string(kernel->name).ends_with(" f8");
          device.run(op_case, kernel);
          const HostTensor expected = product(in_8_bits ? rounded_rows(x) : x, stored, out);
          // The units that multiply 8 bits sum some tens of products before they reach f32.
          const Tolerance sums = in_8_bits ? Tolerance{0x1p-9, 0x1p-7} : tolerance(out, compute),
                          step = tolerance(out, HEDDLE_F32);
          const std::string found = difference(
              op_case.out[0], expected,
              {std::max(sums.relative, step.relative), std::max(sums.largest, step.largest)});
          BOOST_TEST(found == "", op_case.name << " by " << kernel->name << ": " << found);
        }
      }
}

BOOST_AUTO_TEST_CASE(rows_of_zeros_and_of_the_least_numbers_stay_finite,
                     *needs_ops({HEDDLE_OP_LINEAR}) * needs_weights(HEDDLE_USE_LINEAR)) {
  const Plugin plugin(settings().plugin);
  const TestDevice device(plugin, settings().options);
  HostTensor x(HEDDLE_BF16, {4, 64}), weight(HEDDLE_BF16, {16, 64});
  for (std::int64_t i = 0; i < x.count(); ++i)
    x.set(i, i / 64 == 0 ? 0 : i / 64 == 1 ? 0x1p-126 : i / 64 == 2 ? 0x1p10 : 1);
  for (std::int64_t i = 0; i < weight.count(); ++i) weight.set(i, i / 64 == 0 ? 0 : 0.5);
  OpCase op_case{.name = "rows of zeros",
                 .op = HEDDLE_OP_LINEAR,
                 .in = {x, weight, std::nullopt, std::nullopt},
                 .out = {HostTensor(HEDDLE_F32, {4, 16})},
                 .attrs = bytes_of(heddle_activation_attrs{HEDDLE_ACT_NONE}),
                 .weight = OpCase::Weight{1, HEDDLE_USE_LINEAR_FP8, HEDDLE_F8_E4M3}};
  const std::vector<const heddle_kernel*> kernels = device.fitting(op_case);
  BOOST_TEST((!kernels.empty() || !settings().complete));
  for (const heddle_kernel* kernel : kernels) {
    device.run(op_case, kernel);
    for (std::int64_t i = 0; i < op_case.out[0].count(); ++i) {
      const std::int64_t row = i / 16;
      const double expected = i % 16 == 0 || row < 2 ? 0 : row == 2 ? 0x1p15 : 32;
      BOOST_TEST(std::fabs(op_case.out[0].get(i) - expected) <= 1e-5 * expected + 1e-30,
                 kernel->name << ", element " << i << " is " << op_case.out[0].get(i));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::conformance
