// Matrices in int8 as ComfyUI's quantised files have them, and what of them is refused.
#include "engine/files/packed_rows.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>

#include "engine/base/error.h"
#include "engine/files/checkpoint.h"
#include "engine/files/joined_dtype.h"
#include "engine/memory/weight_source.h"
#include "heddle/abi/node.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using namespace heddle::test;
using engine::Checkpoint;

namespace {

constexpr std::int64_t kRows = 6, kColumns = 128, kGroup = 64;

std::int8_t number_at(std::int64_t row, std::int64_t column) {
  return static_cast<std::int8_t>((row * 37 + column * 91 + row * column) % 255 - 127);
}

// By its definition: an element of the Kronecker product, digit by digit.
double hadamard(std::int64_t row, std::int64_t column, std::int64_t order) {
  static constexpr int kSeed[4][4] = {{1, 1, 1, -1}, {1, 1, -1, 1}, {1, -1, 1, 1}, {-1, 1, 1, 1}};
  double element = 1 / std::sqrt(double(order));
  for (std::int64_t left = order; left > 1; left /= 4, row /= 4, column /= 4)
    element *= kSeed[row % 4][column % 4];
  return element;
}

struct PackedFile {
  TemporaryFolder folder;
  std::string told = R"({"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": 64})";
  std::vector<float> scales{0.5f, 0.01f, 2, 1, 3, 0.125f};
  std::string type = "I8";
  std::int64_t wide = kColumns;
  FileMetadata metadata;

  Checkpoint open() {
    std::string bytes;
    for (std::int64_t r = 0; r < kRows; ++r)
      for (std::int64_t c = 0; c < wide; ++c) bytes += char(number_at(r, c));
    std::vector<FileTensor> tensors;
    if (!told.empty())
      tensors.push_back({"m.comfy_quant", "U8", {std::int64_t(told.size())}, told});
    tensors.push_back({"m.weight", type, {kRows, wide}, bytes});
    if (!scales.empty())
      tensors.push_back(
          {"m.weight_scale", "F32", {std::int64_t(scales.size()), 1}, bytes_of_floats(scales)});
    write_safetensors(folder / "m.safetensors", tensors, metadata);
    return engine::open_checkpoint(folder / "m.safetensors");
  }
  double meant(std::int64_t row, std::int64_t column) const {
    const std::int64_t first = column / kGroup * kGroup;
    double sum = 0;
    for (std::int64_t k = 0; k < kGroup; ++k)
      sum += number_at(row, first + k) * hadamard(k, column - first, kGroup);
    return sum * double(scales[std::size_t(row)]);
  }
  std::string refusal() {
    try {
      open();
    } catch (const engine::Error& error) {
      return error.full();
    }
    return "";
  }
};

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(packed_rows, PackedFile)

BOOST_AUTO_TEST_CASE(rotated_rows_are_read_as_they_were_before) {
  const Checkpoint file = open();
  engine::WeightSource source;
  source.use = HEDDLE_USE_LINEAR;
  source.parts = {{&file.at("m.weight"), 1, 5}};
  source.columns = {{100, 128}, {2, 5}};  // groups have to be read whole for that
  BOOST_TEST(source.info().dtype == HEDDLE_F32);
  BOOST_TEST(engine::is_made(source));
  const engine::HostWeight host = engine::host_weight(source);
  BOOST_TEST_REQUIRE(host.parts.size() == 1u);
  const auto* floats = static_cast<const float*>(host.parts[0].data);
  for (std::int64_t row = 1; row < 5; ++row)
    for (std::int64_t i = 0; i < 31; ++i) {
      const std::int64_t column = i < 28 ? 100 + i : i - 28 + 2;
      const double wanted = meant(row, column);
      const double is = *floats++;
      BOOST_TEST(std::abs(is - wanted) <= 1e-6 * std::abs(wanted) + 1e-9,
                 row << ", " << column << ": " << is << " and not " << wanted);
    }
}

BOOST_AUTO_TEST_CASE(rows_that_are_whole_blocks_stay_in_8_bits) {
  constexpr std::int64_t kRow = 2 * (4 + 256);  // bytes of a row in blocks
  wide = 512;
  for (const bool rotated : {false, true}) {
    told = rotated ? R"({"format": "int8_tensorwise", "convrot": true})"
                   : R"({"format": "int8_tensorwise"})";
    const Checkpoint file = open();
    engine::WeightSource source;
    source.use = HEDDLE_USE_LINEAR;
    source.parts = {{&file.at("m.weight"), 1, 3}, {&file.at("m.weight"), 4, 6}};
    BOOST_TEST(source.info().dtype == (rotated ? HEDDLE_I8_ROTATED : HEDDLE_I8_SCALED));
    BOOST_TEST(engine::is_patched_beside(file.at("m.weight"), HEDDLE_USE_LINEAR));
    const engine::HostWeight host = engine::host_weight(source);
    BOOST_TEST_REQUIRE(host.parts.size() == 2u);
    BOOST_TEST(host.made_bytes == 4u * kRow);
    const auto* bytes = static_cast<const char*>(host.parts[1].data);  // rows 4 and 5
    for (std::int64_t row = 0; row < 2; ++row)
      for (std::int64_t block = 0; block < 2; ++block) {
        const char* at = bytes + row * kRow + block * 260;
        float scale = 0;
        std::memcpy(&scale, at, 4);
        BOOST_TEST(scale == scales[std::size_t(4 + row)]);
        for (std::int64_t i = 0; i < 256; ++i)
          if (at[4 + i] != char(number_at(4 + row, block * 256 + i)))
            BOOST_ERROR("row " << row << ", block " << block << ", number " << i);
      }
    source.columns = {{256, 512}};
    BOOST_TEST(engine::host_weight(source).made_bytes == 4u * 260);
    source.columns = {{128, 512}};
    BOOST_CHECK_EXCEPTION(source.info(), engine::Error, [](const engine::Error& error) {
      return holds(error.full(), "stand in blocks of 256");
    });
    source.columns = {};
    source.use = HEDDLE_USE_TABLE;
    BOOST_TEST(source.info().dtype == HEDDLE_BF16);
  }
}

BOOST_AUTO_TEST_CASE(a_table_of_them_is_told_to_be_of_16_bits) {
  const Checkpoint file = open();
  engine::WeightSource source;
  source.use = HEDDLE_USE_TABLE;
  source.parts = {{&file.at("m.weight"), 0, kRows}};
  BOOST_TEST(source.info().dtype == HEDDLE_BF16);
}

BOOST_AUTO_TEST_CASE(the_metadata_may_tell_it_too) {
  told = "";
  std::vector<float> row(kColumns);  // a scale beside it says no more
  const Checkpoint plain = open();
  plain.at("m.weight").packed->widen(0, plain.at("m.weight").data.first(kColumns), row.data());
  BOOST_TEST(row[5] == 0.5f * float(number_at(0, 5)));
  metadata = {{"_quantization_metadata",
               R"({\"layers\": {\"m\": {\"format\": \"int8_tensorwise\", \"convrot\": true}}})"}};
  BOOST_TEST(holds(refusal(), "groups of 256"));
  scales = {};
  metadata = {};
  BOOST_TEST((open().at("m.weight").packed == nullptr));  // whole numbers, for all that is said
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused_with_what_it_is) {
  scales = {1, 2};
  BOOST_TEST(holds(refusal(), "(2, 1)"));
  scales = {};
  BOOST_TEST(holds(refusal(), "has no 'm.weight_scale' beside it"));
  scales = {1};
  told = R"({"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": 32})";
  BOOST_TEST(holds(refusal(), "groups of 32"));
  told = R"({"format": "svdquant_w4a4"})";
  BOOST_TEST(holds(refusal(), "quantised as 'svdquant_w4a4', which is not read"));
  told = R"({"format": "int8_tensorwise"})";
  type = "U8";
  BOOST_TEST(holds(refusal(), "is not what that is: a matrix of i8"));
  told = "{";
  BOOST_TEST(holds(refusal(), "m.comfy_quant"));
}

BOOST_AUTO_TEST_SUITE_END()
