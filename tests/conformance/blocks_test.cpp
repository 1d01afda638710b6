// Block formats and floats of 8 bits, exactly: as the gguf package and PyTorch widen them
// (make_block_goldens.py), read as vectors and by every kernel that multiplies them.
#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "goldens.h"
#include "heddle/abi/node.h"
#include "heddle/device.hpp"
#include "needs.h"
#include "op_cases.h"
#include "settings.h"

namespace heddle::conformance {

namespace {

struct Fixture {
  const Plugin plugin{settings().plugin};
  const TestDevice device{plugin, settings().options};
  const std::map<std::string, HostTensor> goldens = read_tensors(
      std::filesystem::path(settings().goldens).replace_filename("blocks.safetensors").string());

  const HostTensor& golden(heddle_dtype type, const char* part) const {
    return goldens.at(std::string(device::dtype_name(type)) + "." + part);
  }

  // The golden bytes as a tensor of their type.
  HostTensor weight(heddle_dtype type, Shape shape) const {
    HostTensor made(type, std::move(shape));
    const std::vector<std::byte> bytes = golden(type, "bytes").elements();
    BOOST_REQUIRE(static_cast<std::int64_t>(bytes.size()) == device::bytes_of(type, made.count()));
    std::memcpy(made.memory().data() + made.origin(), bytes.data(), bytes.size());
    return made;
  }

  // The elements of a weight whose use is a vector.
  std::vector<float> widened(const HostTensor& weight, double scale = 0) const {
    heddle_weight_layout layout{};
    check(device.desc().weight_layout(device.raw(), HEDDLE_USE_VECTOR, &weight.info(), &layout));
    BOOST_TEST(layout.info.dtype == HEDDLE_F32);
    const TestDevice::Buffer memory(device, layout.bytes);
    make(HEDDLE_USE_VECTOR, layout, weight, scale, memory);
    std::vector<float> values(static_cast<std::size_t>(weight.count()));
    check(device.desc().copy(device.stream(), nullptr, values.data(), device.raw(), memory.memory,
                             values.size() * sizeof(float)));
    device.wait();
    return values;
  }

  void make(std::int32_t use, const heddle_weight_layout& layout, const HostTensor& weight,
            double scale, const TestDevice::Buffer& memory) const {
    const heddle_view part{weight.info(),
                           const_cast<std::byte*>(weight.memory().data()) + weight.origin(), scale};
    const heddle_view* parts[] = {&part};
    check(device.desc().make_weight(device.raw(), device.stream(), use, &layout, 1, parts,
                                    memory.memory));
    device.wait();
  }

  // x weight^T: for one term, x being 1, the weights themselves.
  std::vector<float> column(const HostTensor& weight, heddle_dtype stored, double scale) const {
    heddle_tensor_info info = weight.info();
    info.dtype = stored;
    heddle_weight_layout layout{};
    check(device.desc().weight_layout(device.raw(), HEDDLE_USE_LINEAR, &info, &layout));
    const TestDevice::Buffer memory(device, layout.bytes);
    make(HEDDLE_USE_LINEAR, layout, weight, scale, memory);
    const std::int64_t n = weight.info().shape[0];
    const TestDevice::Buffer one(device, 4), sums(device, static_cast<std::size_t>(n) * 4);
    const float number = 1;
    check(device.desc().copy(device.stream(), device.raw(), one.memory, nullptr, &number, 4));
    const heddle_view x{device::row_major(HEDDLE_F32, {1, 1}), one.memory},
        w{layout.info, memory.memory}, out{device::row_major(HEDDLE_F32, {1, n}), sums.memory};
    const heddle_view *in[] = {&x, &w}, *outs[] = {&out};
    const heddle_activation_attrs attrs{HEDDLE_ACT_NONE};
    const heddle_op_call call{
        sizeof(heddle_op_call), HEDDLE_OP_LINEAR, 2, 1, in, outs, &attrs, sizeof attrs};
    const heddle_kernel* best = nullptr;
    for (const heddle_kernel* kernel : device.kernels())
      if (std::string(kernel->op) == call.op && kernel->fits(device.raw(), &call) > 0 &&
          (best == nullptr || kernel->fits(device.raw(), &call) > best->fits(device.raw(), &call)))
        best = kernel;
    BOOST_REQUIRE(best != nullptr);
    check(best->launch(device.raw(), device.stream(), &call, nullptr));
    std::vector<float> values(static_cast<std::size_t>(n));
    check(device.desc().copy(device.stream(), nullptr, values.data(), device.raw(), sums.memory,
                             values.size() * 4));
    device.wait();
    return values;
  }
};

bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

BOOST_FIXTURE_TEST_SUITE(blocks, Fixture)

BOOST_AUTO_TEST_CASE(every_block_format_is_widened_as_the_gguf_package_does,
                     *needs_weights(HEDDLE_USE_VECTOR)) {
  for (heddle_dtype type = HEDDLE_Q8_0; type <= HEDDLE_I4_GROUPED; ++type) {
    const HostTensor& expected = golden(type, "values");
    const std::int64_t rows = expected.info().shape[0], width = expected.info().shape[1];
    const HostTensor file = weight(type, {rows, width});
    const std::vector<float> values = widened(file);
    for (std::int64_t i = 0; i < expected.count(); ++i)
      BOOST_TEST(values[static_cast<std::size_t>(i)] == static_cast<float>(expected.get(i)),
                 device::dtype_name(type) << " element " << i);

    // Rows of ones and zeros pick single weights.
    HostTensor x(HEDDLE_F32, {width, width});
    for (std::int64_t i = 0; i < x.count(); ++i) x.set(i, i / width == i % width);
    OpCase op_case{.name = device::dtype_name(type),
                   .op = HEDDLE_OP_LINEAR,
                   .in = {x, file, std::nullopt, std::nullopt},
                   .out = {HostTensor(HEDDLE_F32, {width, rows})},
                   .attrs = bytes_of(heddle_activation_attrs{HEDDLE_ACT_NONE}),
                   .weight = OpCase::Weight{1, HEDDLE_USE_LINEAR}};
    for (const heddle_kernel* kernel : device.fitting(op_case)) {
      device.run(op_case, kernel);
      for (std::int64_t i = 0; i < expected.count(); ++i)
        BOOST_TEST(op_case.out[0].get(i % width * rows + i / width) == expected.get(i),
                   device::dtype_name(type) << " by " << kernel->name << ", element " << i);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_matrix_in_blocks_takes_the_bytes_that_it_has_in_the_file,
                     *needs_weights(HEDDLE_USE_LINEAR) * needs_weights(HEDDLE_USE_TABLE)) {
  for (heddle_dtype type = HEDDLE_Q8_0; type <= HEDDLE_I4_GROUPED; ++type) {
    const heddle_tensor_info info = device::row_major(type, {64, 512});
    heddle_weight_layout layout{};
    for (const std::int32_t use : {HEDDLE_USE_LINEAR, HEDDLE_USE_TABLE}) {
      check(device.desc().weight_layout(device.raw(), use, &info, &layout));
      BOOST_TEST(layout.bytes == static_cast<std::uint64_t>(device::bytes_of(type, 64 * 512)));
    }
    const heddle_tensor_info cut = device::row_major(type, {64, 500});
    heddle_status* status =
        device.desc().weight_layout(device.raw(), HEDDLE_USE_LINEAR, &cut, &layout);
    BOOST_REQUIRE(status != nullptr);
    BOOST_TEST((take(status).message.find("(64, 500)") != std::string::npos));
  }
}

BOOST_AUTO_TEST_CASE(floats_of_8_bits_are_widened_as_pytorch_does_and_scaled,
                     *needs_weights(HEDDLE_USE_VECTOR) * needs_ops({HEDDLE_OP_LINEAR})) {
  for (const heddle_dtype type : {HEDDLE_F8_E4M3, HEDDLE_F8_E5M2}) {
    const HostTensor& expected = golden(type, "values");
    for (const double scale : {0.0, 1.0, 0.37}) {
      const float factor = scale == 0 ? 1.0f : static_cast<float>(scale);
      const std::vector<float> vector = widened(weight(type, {256}), scale),
                               matrix = column(weight(type, {256, 1}), type, scale);
      for (std::int64_t i = 0; i < 256; ++i) {
        const float value = static_cast<float>(expected.get(i)) * factor;
        BOOST_TEST(same(vector[static_cast<std::size_t>(i)], value),
                   device::dtype_name(type) << " " << i << " as a vector");
        BOOST_TEST(same(matrix[static_cast<std::size_t>(i)], value),
                   device::dtype_name(type) << " " << i << " in a matrix");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_cast_to_8_bits_gives_what_pytorch_gives,
                     *needs_weights(HEDDLE_USE_VECTOR) * needs_ops({HEDDLE_OP_LINEAR})) {
  for (const heddle_dtype type : {HEDDLE_F8_E4M3, HEDDLE_F8_E5M2}) {
    const HostTensor &values = golden(type, "values"), &narrow = golden(type, "narrow");
    const std::int64_t count = narrow.count();
    HostTensor wide(HEDDLE_F32, {count, 1});
    std::memcpy(wide.memory().data() + wide.origin(), golden(type, "wide").elements().data(),
                static_cast<std::size_t>(count) * 4);
    const std::vector<float> cast = column(wide, type, 0);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto expected =
          static_cast<float>(values.get(static_cast<std::int64_t>(narrow.get(i))));
      BOOST_TEST(same(cast[static_cast<std::size_t>(i)], expected),
                 device::dtype_name(type)
                     << " of " << wide.get(i) << " is " << cast[static_cast<std::size_t>(i)]
                     << ", not " << expected);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::conformance
