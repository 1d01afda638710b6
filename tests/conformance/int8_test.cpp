// Products of whole numbers, on devices that are asked for them (plugins/blocks/linear_int8.h): the
// definition once more, in f32 and to the byte, and how far they are from the exact product,
// against what their rounding explains.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "compare.h"
#include "heddle/device.hpp"
#include "needs.h"
#include "op_cases.h"
#include "settings.h"
#include "whole_numbers.h"

namespace heddle::conformance {

namespace {

struct WholeCase {
  std::int64_t rows, columns, terms;
  heddle_dtype x, out;
  bool is_rotated = false, has_bias = false, has_residual = false;
  std::int64_t items = 1;  // of a batch, each of `rows`
  heddle_dtype bias = HEDDLE_F32;
  bool is_residual_sliced = false;
};

OptionMap with_int8_products() {
  OptionMap options = settings().options;
  options.insert_or_assign("linear_dtype", std::string("int8"));
  return options;
}

// Other devices may not know the option.
bool knows_int8_products(const Plugin& plugin) {
  const std::string kind = plugin.device().kind;
  const bool knows = opens_with(plugin, with_int8_products());
  BOOST_TEST((knows || (kind != "cpu" && kind != "cuda")), kind << " refuses the option");
  return knows;
}

bool is_whole(const heddle_kernel* kernel) {
  const std::string name = kernel->name;
  return name == "i8" || name.ends_with(" i8");
}

const heddle_kernel* whole_kernel(const TestDevice& device, const OpCase& op_case) {
  for (const heddle_kernel* kernel : device.fitting(op_case))
    if (is_whole(kernel)) return kernel;
  return nullptr;
}

std::string name_of_whole(const WholeCase& one) {
  return device::cat(one.rows, " x ", one.columns, ", ", one.terms, " terms, ",
                     device::dtype_name(one.x), " to ", device::dtype_name(one.out),
                     one.is_rotated ? ", rotated" : "", one.has_bias ? ", bias" : "",
                     one.has_bias && one.bias != HEDDLE_F32 ? " in 16 bits" : "",
                     one.has_residual ? ", residual" : "", one.is_residual_sliced ? ", sliced" : "",
                     one.items > 1 ? ", in a batch" : "");
}

// Rows of sizes of their own; slices.
OpCase whole_case_of(Random& random, const WholeCase& one, const WholeMatrix& matrix) {
  HostTensor x = filled(random, HostTensor::slice(one.x, {one.items, one.rows, one.terms}, 8));
  for (std::int64_t row = 0; row < one.items * one.rows; ++row)
    for (std::int64_t c = 0; c < one.terms; ++c)
      x.set(row * one.terms + c, x.get(row * one.terms + c) * static_cast<double>(1 + row % 7) / 4);
  OpCase made{.name = name_of_whole(one),
              .op = HEDDLE_OP_LINEAR,
              .in = {x, matrix.blocks(), std::nullopt, std::nullopt},
              .out = {HostTensor::slice(one.out, {one.items, one.rows, one.columns}, 8)},
              .attrs = conformance::bytes_of(heddle_activation_attrs{HEDDLE_ACT_NONE}),
              .weight = OpCase::Weight{1, HEDDLE_USE_LINEAR}};
  if (one.has_bias) made.in[2] = filled(random, HostTensor(one.bias, {one.columns}));
  const Shape whole{one.items, one.rows, one.columns};
  if (one.has_residual)
    made.in[3] = filled(random, one.is_residual_sliced ? HostTensor::slice(one.out, whole, 8)
                                                       : HostTensor(one.out, whole));
  return made;
}

// By the definition; numbers of f32 all the way.
HostTensor defined_product(const OpCase& op_case, const WholeMatrix& matrix) {
  const HostTensor& x = *op_case.in[0];
  const std::int64_t items = x.info().shape[0], each = x.info().shape[1], rows = items * each,
                     terms = matrix.columns;
  HostTensor made(op_case.out[0].info().dtype, {items, each, matrix.rows});
  for (std::int64_t row = 0; row < rows; ++row) {
    const WholeRow left = whole_row(x, row, terms, matrix.is_rotated);
    for (std::int64_t column = 0; column < matrix.rows; ++column) {
      std::int32_t sum = 0;
      for (std::int64_t i = 0; i < terms; ++i)
        sum += left.numbers[static_cast<std::size_t>(i)] *
               matrix.numbers[static_cast<std::size_t>(column * terms + i)];
      const float scale = left.scale * matrix.scales[static_cast<std::size_t>(column)];
      float y = static_cast<float>(sum) * scale;
      const std::int64_t at = row * matrix.rows + column;
      if (op_case.in[2]) y += static_cast<float>(op_case.in[2]->get(column));
      if (op_case.in[3]) y += static_cast<float>(op_case.in[3]->get(at));
      made.set(at, y);
    }
  }
  return made;
}

HostTensor exact_product(const OpCase& op_case, const WholeMatrix& matrix) {
  const HostTensor& x = *op_case.in[0];
  const std::int64_t items = x.info().shape[0], each = x.info().shape[1], rows = items * each;
  HostTensor made(HEDDLE_F64, {items, each, matrix.rows});
  for (std::int64_t column = 0; column < matrix.rows; ++column) {
    const std::vector<double> right = matrix.wide(column);
    for (std::int64_t row = 0; row < rows; ++row) {
      double sum = 0;
      for (std::int64_t i = 0; i < matrix.columns; ++i)
        sum += x.get(row * matrix.columns + i) * right[static_cast<std::size_t>(i)];
      const std::int64_t at = row * matrix.rows + column;
      if (op_case.in[2]) sum += op_case.in[2]->get(column);
      if (op_case.in[3]) sum += op_case.in[3]->get(at);
      made.set(at, sum);
    }
  }
  return made;
}

double rms_of_whole(const HostTensor& a, const HostTensor& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < b.count(); ++i) sum += std::pow(a.get(i) - b.get(i), 2);
  return std::sqrt(sum / static_cast<double>(b.count()));
}

const WholeCase kWholeCases[] = {
    {50, 48, 768, HEDDLE_BF16, HEDDLE_BF16},
    {50, 48, 768, HEDDLE_BF16, HEDDLE_BF16, true, true, true},
    {33, 64, 256, HEDDLE_F32, HEDDLE_F32, true},
    {1, 32, 3072, HEDDLE_F32, HEDDLE_BF16, false, true},
    {300, 16, 512, HEDDLE_F16, HEDDLE_F16, true, true},
    {17, 80, 8448, HEDDLE_BF16, HEDDLE_F32, true, false, true},
    {20, 48, 512, HEDDLE_BF16, HEDDLE_BF16, true, true, true, 3},
    {24, 32, 256, HEDDLE_BF16, HEDDLE_BF16, false, true, false, 1, HEDDLE_BF16},
    {40, 64, 512, HEDDLE_F32, HEDDLE_BF16, true, true, true, 2, HEDDLE_BF16, true},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(int8)

BOOST_AUTO_TEST_CASE(products_have_the_bytes_of_the_definition_and_the_error_of_its_rounding,
                     *needs_ops({HEDDLE_OP_LINEAR}) * needs_weights(HEDDLE_USE_LINEAR)) {
  const Plugin plugin(settings().plugin);
  if (!knows_int8_products(plugin)) return;
  const TestDevice device(plugin, with_int8_products());
  Random random(settings().seed);
  for (const WholeCase& one : kWholeCases) {
    const WholeMatrix matrix(random, one.columns, one.terms, one.is_rotated);
    OpCase op_case = whole_case_of(random, one, matrix);
    const std::vector<const heddle_kernel*> kernels = device.fitting(op_case);
    BOOST_TEST_REQUIRE(!kernels.empty(), op_case.name << ": no kernel fits");
    if (!is_whole(kernels.front()))  // the CPU always has it, a card may have none
      BOOST_TEST((std::string(device.desc().kind) != "cpu"), op_case.name << ": not by "
                                                                          << "i8");
    const HostTensor expected = defined_product(op_case, matrix),
                     exact = exact_product(op_case, matrix);
    for (const heddle_kernel* kernel : kernels) {
      BOOST_TEST_MESSAGE(op_case.name << " by " << kernel->name);
      device.run(op_case, kernel);
      BOOST_TEST(op_case.out[0].untouched_outside());
      if (!is_whole(kernel)) {
        const std::string found =
            difference(op_case.out[0], exact, tolerance(one.out, device.info().compute));
        BOOST_TEST(found == "", op_case.name << " by " << kernel->name << ": " << found);
        continue;
      }
      BOOST_TEST((op_case.out[0].elements() == expected.elements()),
                 op_case.name << " by " << kernel->name << ": "
                              << difference(op_case.out[0], expected, {0, 0}));
      const double rms = rms_of_whole(expected, exact), found = rms_of_whole(op_case.out[0], exact);
      BOOST_TEST(found <= 1.2 * rms, op_case.name << ": " << found << ", the definition's " << rms);
      BOOST_TEST(rms > 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(activations_come_behind_the_bias,
                     *needs_ops({HEDDLE_OP_LINEAR}) * needs_weights(HEDDLE_USE_LINEAR)) {
  const Plugin plugin(settings().plugin);
  if (!knows_int8_products(plugin)) return;
  const TestDevice device(plugin, with_int8_products());
  Random random(settings().seed);
  const WholeCase one{40, 48, 512, HEDDLE_BF16, HEDDLE_F32, true, true, false};
  const WholeMatrix matrix(random, one.columns, one.terms, true);
  OpCase op_case = whole_case_of(random, one, matrix);
  const HostTensor sums = defined_product(op_case, matrix);
  op_case.in[3] = filled(random, HostTensor(HEDDLE_BF16, {1, one.rows, one.columns}));
  for (const heddle_activation kind : {HEDDLE_ACT_GELU_TANH, HEDDLE_ACT_SILU}) {
    op_case.attrs = conformance::bytes_of(heddle_activation_attrs{kind});
    HostTensor expected(HEDDLE_F64, {1, one.rows, one.columns});
    for (std::int64_t i = 0; i < sums.count(); ++i) {
      const double x = sums.get(i);
      const double y = kind == HEDDLE_ACT_SILU
                           ? x / (1 + std::exp(-x))
                           : x / 2 *
                                 (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) *
                                                (x + 0.044715 * x * x * x)));
      expected.set(i, y + op_case.in[3]->get(i));
    }
    if (const heddle_kernel* const kernel = whole_kernel(device, op_case)) {
      device.run(op_case, kernel);
      const std::string found =
          difference(op_case.out[0], expected, tolerance(HEDDLE_F32, HEDDLE_F32));
      BOOST_TEST(found == "", kind << " by " << kernel->name << ": " << found);
    }
  }
}

// More of them than a card sums at a time, which the rows of a batch do not show.
BOOST_AUTO_TEST_CASE(a_row_has_the_bytes_that_it_has_alone,
                     *needs_ops({HEDDLE_OP_LINEAR}) * needs_weights(HEDDLE_USE_LINEAR)) {
  const Plugin plugin(settings().plugin);
  if (!knows_int8_products(plugin)) return;
  const TestDevice device(plugin, with_int8_products());
  const bool is_card = std::string(device.desc().kind) != "cpu";
  const WholeCase one{.rows = is_card ? 2100 : 70,
                      .columns = is_card ? 16384 : 272,
                      .terms = 512,
                      .x = HEDDLE_BF16,
                      .out = HEDDLE_BF16,
                      .is_rotated = true};
  Random random(settings().seed);
  const WholeMatrix matrix(random, one.columns, one.terms, true);
  OpCase all = whole_case_of(random, one, matrix);
  const heddle_kernel* const kernel = whole_kernel(device, all);
  if (kernel == nullptr) return;
  device.run(all, kernel);
  const std::vector<std::byte> bytes = all.out[0].elements();
  device.run(all, kernel);
  BOOST_TEST((all.out[0].elements() == bytes), "another run has other bytes");
  const std::size_t row_bytes = static_cast<std::size_t>(one.columns) * 2;
  for (const std::int64_t row : {std::int64_t{0}, std::int64_t{33}, one.rows / 2, one.rows - 1}) {
    OpCase alone = all;
    alone.in[0] = HostTensor(HEDDLE_BF16, {1, 1, one.terms});
    for (std::int64_t c = 0; c < one.terms; ++c)
      alone.in[0]->set(c, all.in[0]->get(row * one.terms + c));
    alone.out[0] = HostTensor(HEDDLE_BF16, {1, 1, one.columns});
    const heddle_kernel* const same = whole_kernel(device, alone);
    BOOST_TEST_REQUIRE((same != nullptr), "a row alone is not multiplied so");
    device.run(alone, same);
    BOOST_TEST(
        std::memcmp(alone.out[0].elements().data(),
                    bytes.data() + static_cast<std::size_t>(row) * row_bytes, row_bytes) == 0,
        "row " << row << " alone has other bytes");
  }
}

BOOST_AUTO_TEST_CASE(zeros_least_numbers_infinities_and_none,
                     *needs_ops({HEDDLE_OP_LINEAR}) * needs_weights(HEDDLE_USE_LINEAR)) {
  const Plugin plugin(settings().plugin);
  if (!knows_int8_products(plugin)) return;
  const TestDevice device(plugin, with_int8_products());
  Random random(settings().seed);
  for (const bool is_rotated : {false, true}) {
    const WholeMatrix matrix(random, 32, 512, is_rotated);
    OpCase op_case =
        whole_case_of(random, {5, 32, 512, HEDDLE_F32, HEDDLE_F32, is_rotated}, matrix);
    HostTensor& x = *op_case.in[0];
    for (std::int64_t c = 0; c < 512; ++c) {
      x.set(c, 0);
      x.set(512 + c, 1e-38);
    }
    x.set(2 * 512 + 3, std::numeric_limits<double>::quiet_NaN());
    x.set(3 * 512 + 300, std::numeric_limits<double>::infinity());
    const heddle_kernel* const kernel = whole_kernel(device, op_case);
    if (kernel == nullptr) return;
    device.run(op_case, kernel);
    for (std::int64_t c = 0; c < 32; ++c) {
      BOOST_TEST(op_case.out[0].get(c) == 0);
      BOOST_TEST(std::fabs(op_case.out[0].get(32 + c)) < 1e-30);
      BOOST_TEST(std::isnan(op_case.out[0].get(64 + c)));
      BOOST_TEST(!std::isfinite(op_case.out[0].get(96 + c)));
      BOOST_TEST(std::isfinite(op_case.out[0].get(128 + c)));
    }
  }
}

// No file has such; what is made of them has to be near all the same.
BOOST_AUTO_TEST_CASE(unlike_scales_in_a_row_are_brought_to_the_largest,
                     *needs_ops({HEDDLE_OP_LINEAR}) * needs_weights(HEDDLE_USE_LINEAR)) {
  const Plugin plugin(settings().plugin);
  if (!knows_int8_products(plugin)) return;
  const TestDevice device(plugin, with_int8_products());
  Random random(settings().seed);
  WholeMatrix matrix(random, 32, 512, false);
  OpCase op_case = whole_case_of(random, {24, 32, 512, HEDDLE_F32, HEDDLE_F32}, matrix);
  // The second block of each row has half the scale of the first, which is the row's.
  std::byte* const blocks = op_case.in[1]->memory().data() + op_case.in[1]->origin();
  for (std::int64_t row = 0; row < 32; ++row) {
    const float half = matrix.scales[static_cast<std::size_t>(row)] / 2;
    std::memcpy(blocks + (2 * row + 1) * 260, &half, sizeof half);
    for (std::int64_t c = 256; c < 512; ++c) {
      std::int8_t& number = matrix.numbers[static_cast<std::size_t>(row * 512 + c)];
      number = static_cast<std::int8_t>(std::nearbyint(static_cast<float>(number) * 0.5f));
    }
  }
  const HostTensor expected = defined_product(op_case, matrix);
  const heddle_kernel* const kernel = whole_kernel(device, op_case);
  if (kernel == nullptr) return;
  device.run(op_case, kernel);
  BOOST_TEST((op_case.out[0].elements() == expected.elements()),
             difference(op_case.out[0], expected, {0, 0}));
}

BOOST_AUTO_TEST_CASE(other_matrices_are_as_without_it,
                     *needs_ops({HEDDLE_OP_LINEAR}) * needs_weights(HEDDLE_USE_LINEAR)) {
  const Plugin plugin(settings().plugin);
  if (!knows_int8_products(plugin)) return;
  const TestDevice device(plugin, with_int8_products()), plain(plugin, settings().options);
  Random random(settings().seed);
  const WholeMatrix matrix(random, 32, 512, true);
  OpCase op_case = whole_case_of(random, {24, 32, 512, HEDDLE_BF16, HEDDLE_BF16, true}, matrix);
  const bool has_kernel = whole_kernel(device, op_case) != nullptr;
  BOOST_TEST((whole_kernel(plain, op_case) == nullptr));
  BOOST_TEST(!plain.fitting(op_case).empty());
  for (const heddle_dtype type : {HEDDLE_Q8_0, HEDDLE_I4_ROTATED, HEDDLE_BF16}) {
    op_case.in[1] = filled(random, HostTensor(type, {32, 512}), 0.25);
    BOOST_TEST((whole_kernel(device, op_case) == nullptr), device::dtype_name(type));
    BOOST_TEST(!device.fitting(op_case).empty());
  }
  // The model's name tells devices that compute otherwise apart.
  const std::string name = device.info().name;
  if (has_kernel) BOOST_TEST((name.find("products in int8") != std::string::npos), name);
  BOOST_TEST((std::string(plain.info().name).find("int8") == std::string::npos));
  BOOST_TEST(!opens_with(plugin, {{"linear_dtype", std::string("fp8")}}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::conformance
