// Tensors of gguf files that lie in blocks which no row of theirs begins or ends with: the very
// numbers that the gguf package reads (make_reshaped_goldens.py).
#include <boost/test/unit_test.hpp>
#include <cstring>

#include "engine/files/stored_rows.h"
#include "engine/memory/host_weights.h"
#include "engine/memory/weight_source.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/node.h"
#include "tests/support/golden_files.h"
#include "tests/support/refusal.h"

using namespace heddle::engine;

namespace {

struct ReshapedGoldens {
  const std::filesystem::path folder = heddle::test::tests_folder() / "engine/memory";
  Checkpoint file = open_checkpoint(folder / "reshaped.gguf"),
             expected = open_checkpoint(folder / "reshaped.safetensors");

  // Compared as numbers: on the way to sums a zero may lose its sign.
  static std::vector<float> made_of(const TensorView& tensor, std::int64_t begin,
                                    std::int64_t end) {
    const std::int32_t use = tensor.shape.size() == 2 ? HEDDLE_USE_LINEAR : HEDDLE_USE_CONV2D;
    const WeightSource source{.parts = {{&tensor, begin, end}}, .use = use};
    BOOST_TEST(source.info().dtype == HEDDLE_F32, tensor.name);
    const HostWeight host = host_weight(source);
    std::vector<float> numbers;
    for (const heddle_view& part : host.parts) {
      const auto* first = static_cast<const float*>(part.data);
      numbers.insert(numbers.end(), first, first + dense_bytes(part.info) / sizeof(float));
    }
    return numbers;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(reshaped_weights, ReshapedGoldens)

BOOST_AUTO_TEST_CASE(numbers_of_every_format_are_those_of_the_gguf_package) {
  BOOST_TEST(file.tensors().size() == 16u);
  for (const TensorView& tensor : file.tensors()) {
    const TensorView& wanted = expected.at(tensor.name);
    BOOST_TEST(tensor.shape == wanted.shape, tensor.name);
    std::vector<float> numbers(wanted.data.size() / sizeof(float));
    std::memcpy(numbers.data(), wanted.data.data(), wanted.data.size());
    const std::int64_t rows = tensor.shape[0];
    BOOST_TEST((made_of(tensor, 0, rows) == numbers), tensor.name);
    const auto row = std::ptrdiff_t(numbers.size()) / rows;
    for (std::int64_t first = 0; first + 2 < rows; first += 5) {
      const std::vector<float> two(numbers.begin() + first * row,
                                   numbers.begin() + (first + 2) * row);
      BOOST_TEST((made_of(tensor, first, first + 2) == two), tensor.name << ", from row " << first);
    }
  }
}

// What is read ahead of some rows is all blocks that they are in, and no more.
BOOST_AUTO_TEST_CASE(rows_are_read_from_the_blocks_that_hold_them) {
  const TensorView& tensor = file.at("Q8_0.filter");
  const FilePart part = file_part(tensor, 1, 3);  // numbers 36 to 107 of blocks of 32
  BOOST_TEST(part.offset - part.tensor_offset == 34u);
  BOOST_TEST(part.bytes == 3u * 34u);
  const FilePart whole = file_part(tensor, 0, tensor.shape[0]);
  BOOST_TEST(whole.bytes == tensor.data.size());
  BOOST_TEST(file_part(tensor, 2, 2).bytes == 0u);
}

BOOST_AUTO_TEST_CASE(they_are_neither_saved_nor_cast) {
  BOOST_TEST(std::string(heddle::test::refusal_of([&] { file.cast(DType::f8_e4m3); }).what())
                 .find("Leave the file's own type") != std::string::npos);
  const std::vector<std::string> names{"Q4_K.filter"};
  BOOST_TEST(std::string(heddle::test::refusal_of([&] { file.widen(names); }).what())
                 .find("Q4_K.filter") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
