// Weights that are drawn: the same everywhere, spread as they were asked for, and gone in the end.
#include "engine/facade/random_files.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>

#include "engine/files/checkpoint.h"
#include "tests/support/refusal.h"

using namespace heddle;
using engine::DType;

namespace {

const std::vector<RandomTensor> kTensors{
    {"a/one.safetensors", "wide", DType::bf16, {1000, 777}, 0, 0.25},
    {"a/one.safetensors", "scale", DType::f32, {4096}, 1, 0.5},
    {"two.safetensors", "wide", DType::f32, {100, 777}, 0, 0.25}};

std::vector<float> numbers(const engine::TensorView& tensor) {
  std::vector<float> values;
  const std::size_t size = tensor.dtype == DType::f32 ? 4 : 2;
  for (std::size_t i = 0; i < tensor.data.size(); i += size) {
    std::uint32_t bits = 0;
    std::memcpy(reinterpret_cast<char*>(&bits) + 4 - size, tensor.data.data() + i, size);
    float value = 0;
    std::memcpy(&value, &bits, 4);
    values.push_back(value);
  }
  return values;
}

struct Spread {
  double mean = 0, deviation = 0;
};
Spread spread(const std::vector<float>& values) {
  Spread s;
  for (const float v : values) s.mean += v / double(values.size());
  for (const float v : values) s.deviation += (v - s.mean) * (v - s.mean) / double(values.size());
  s.deviation = std::sqrt(s.deviation);
  return s;
}

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::ranges::equal(a, b);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(random_files)

BOOST_AUTO_TEST_CASE(tensors_have_their_shapes_types_and_spread) {
  const RandomFiles files(kTensors);
  BOOST_TEST(files.bytes() == 2u * 777'000 + 4u * 4096 + 4u * 77'700);
  const engine::Checkpoint one = engine::open_checkpoint(files.folder() / "a/one.safetensors");
  BOOST_TEST(one.tensors().size() == 2u);
  BOOST_TEST((one.at("wide").shape == std::vector<std::int64_t>{1000, 777}));
  BOOST_TEST((one.at("wide").dtype == DType::bf16));
  const Spread wide = spread(numbers(one.at("wide"))), scale = spread(numbers(one.at("scale")));
  // Of so many numbers the mean strays by deviation / sqrt(count), the deviation by that / sqrt(2).
  BOOST_TEST(std::abs(wide.mean) < 5 * 0.25 / std::sqrt(777e3));
  BOOST_TEST(std::abs(wide.deviation - 0.25) < 5 * 0.25 / std::sqrt(2 * 777e3));
  BOOST_TEST(std::abs(scale.mean - 1) < 5 * 0.5 / std::sqrt(4096));
  BOOST_TEST(std::abs(scale.deviation - 0.5) < 5 * 0.5 / std::sqrt(2 * 4096));
}

BOOST_AUTO_TEST_CASE(rows_differ_and_so_do_tensors) {
  const RandomFiles files(kTensors);
  const engine::Checkpoint one = engine::open_checkpoint(files.folder() / "a/one.safetensors");
  const auto data = one.at("wide").data;
  for (std::size_t row = 1; row < 1000; ++row)
    BOOST_TEST_REQUIRE(!same_bytes(data.subspan(0, 2 * 777), data.subspan(row * 2 * 777, 2 * 777)));
  const std::vector<float> wide = numbers(one.at("wide")), scale = numbers(one.at("scale"));
  BOOST_TEST(std::abs(wide[0] / 0.25 - (scale[0] - 1) / 0.5) > 1e-3);
}

BOOST_AUTO_TEST_CASE(the_same_tensors_are_the_same_bytes) {
  const RandomFiles first(kTensors), second(kTensors);
  BOOST_TEST(first.folder() != second.folder());
  for (const char* file : {"a/one.safetensors", "two.safetensors"}) {
    const engine::Checkpoint a = engine::open_checkpoint(first.folder() / file),
                             b = engine::open_checkpoint(second.folder() / file);
    for (std::size_t t = 0; t < a.tensors().size(); ++t)
      BOOST_TEST(same_bytes(a.tensors()[t].data, b.tensors()[t].data));
  }
}

BOOST_AUTO_TEST_CASE(nothing_stays_behind) {
  std::filesystem::path folder;
  {
    const RandomFiles files(kTensors);
    folder = files.folder();
    BOOST_TEST(std::filesystem::exists(folder / "two.safetensors"));
  }
  BOOST_TEST(!std::filesystem::exists(folder));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_drawn_is_refused) {
  const auto refused = [](RandomTensor tensor) {
    try {
      const RandomFiles files({std::move(tensor)});
    } catch (const engine::Error& error) {
      return error.code();
    }
    return engine::Code::internal;
  };
  BOOST_TEST(
      (refused({"../x.safetensors", "w", DType::f32, {4}}) == engine::Code::invalid_argument));
  BOOST_TEST((refused({"/x.safetensors", "w", DType::f32, {4}}) == engine::Code::invalid_argument));
  BOOST_TEST((refused({"x.safetensors", "w", DType::i32, {4}}) == engine::Code::invalid_argument));
  BOOST_TEST(
      (refused({"x.safetensors", "w", DType::f32, {4, 0}}) == engine::Code::invalid_argument));
  BOOST_CHECK_THROW(RandomFiles({kTensors[0], kTensors[0]}), engine::Error);
  // More than any machine has.
  BOOST_TEST((refused({"x.safetensors", "w", DType::f32, {std::int64_t{1} << 55}}) ==
              engine::Code::out_of_memory));
}

BOOST_AUTO_TEST_SUITE_END()
