// What fills a slot: which type a device is told, and where rows and columns begin in a file of
// blocks.
#include "engine/memory/weight_source.h"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <string>

#include "heddle/abi/node.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/refusal.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::engine;
using namespace heddle::test;

namespace {

// Bytes of which each tells its place.
std::string counted(std::size_t bytes) {
  std::string text(bytes, ' ');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = char(i % 251);
  return text;
}

struct WeightSourceFixture {
  TemporaryFolder folder;
  Checkpoint file = open_checkpoint(
      folder.write("m.gguf", gguf_bytes({.tensors = {{"q8", kGgmlQ8_0, {64, 6}, counted(6 * 68)},
                                                     {"other", kGgmlQ4_0, {64, 2}, counted(2 * 36)},
                                                     {"half", kGgmlF16, {64, 2}, counted(256)},
                                                     {"vector", kGgmlQ8_0, {96}, counted(102)}}})));

  WeightSource source(const char* name, std::int64_t begin, std::int64_t end) const {
    return {.parts = {{&file.at(name), begin, end}}, .use = HEDDLE_USE_LINEAR};
  }
  static std::string bytes_at(const heddle_view& part, std::size_t count) {
    return {static_cast<const char*>(part.data), count};
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(weight_source, WeightSourceFixture)

BOOST_AUTO_TEST_CASE(rows_of_blocks_are_read_where_they_lie) {
  const WeightSource rows = source("q8", 2, 5);
  const heddle_tensor_info info = rows.info();
  BOOST_TEST(info.dtype == HEDDLE_Q8_0);
  BOOST_TEST(info.shape[0] == 3);
  const HostWeight host = host_weight(rows);
  BOOST_TEST(host.parts.at(0).data == file.at("q8").data.data() + 2 * 68);
  BOOST_TEST(host.parts.at(0).scale == 1.0);
  BOOST_TEST(host_weight(source("vector", 32, 96)).parts.at(0).data ==
             file.at("vector").data.data() + 34);
  BOOST_TEST(std::string(refusal_of([&] {
                           source("vector", 1, 33).info();
                           host_weight(source("vector", 1, 33));
                         }).what())
                 .find("blocks of 32") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(columns_of_blocks_are_put_together_block_by_block) {
  WeightSource right = source("q8", 1, 3);
  right.columns = {{32, 64}};
  BOOST_TEST(right.info().shape[1] == 32);
  const HostWeight host = host_weight(right);
  const std::string all = counted(6 * 68);
  BOOST_TEST(bytes_at(host.parts.at(0), 68) ==
             all.substr(68 + 34, 34) + all.substr(2 * 68 + 34, 34));
  right.columns = {{16, 48}};
  const Error error = refusal_of([&] { right.info(); });
  BOOST_TEST((error.code() == Code::unsupported));
  BOOST_TEST(std::string(error.what())
                 .starts_with("'q8' (6, 64) cannot be divided at its columns 16 and 48"));
}

BOOST_AUTO_TEST_CASE(filters_of_one_frame_are_put_together_filter_by_filter) {
  constexpr std::int64_t kFilters = 2, kChannels = 3, kFrames = 3, kSize = 4;  // 2 x 2
  const std::string bytes = counted(4 * kFilters * kChannels * kFrames * kSize);
  write_safetensors(folder / "video.safetensors",
                    {{"conv", "F32", {kFilters, kChannels, kFrames, 2, 2}, bytes},
                     {"flat", "F32", {2, 2}, counted(16)}});
  const Checkpoint video = open_checkpoint(folder / "video.safetensors");
  WeightSource conv{.parts = {{&video.at("conv"), 1, 2}}, .frame = 3, .use = HEDDLE_USE_CONV2D};
  const heddle_tensor_info info = conv.info();
  BOOST_TEST(info.rank == 4);
  BOOST_TEST(info.shape[0] == 1);
  BOOST_TEST(info.shape[1] == kChannels);
  BOOST_TEST(is_made(conv));
  const HostWeight host = host_weight(conv);
  std::string wanted;
  for (std::int64_t channel = 0; channel < kChannels; ++channel)
    wanted +=
        bytes.substr(std::size_t(4 * kSize * ((kChannels + channel) * kFrames + 2)), 4 * kSize);
  BOOST_TEST(bytes_at(host.parts.at(0), wanted.size()) == wanted);
  const Hash128 third = conv.key({});
  conv.frame = 2;
  BOOST_TEST((conv.key({}) != third));
  conv.parts = {{&video.at("flat"), 0, 2}};
  BOOST_TEST(std::string(refusal_of([&] { conv.info(); }).what()).find("'flat' (2, 2)") == 0);
}

BOOST_AUTO_TEST_CASE(taps_of_filters_over_time_are_matrices_also_transposed) {
  constexpr std::int64_t kRows = 3, kColumns = 2, kTaps = 4;
  const std::string bytes = counted(4 * kRows * kColumns * kTaps);
  write_safetensors(folder / "sound.safetensors",
                    {{"conv", "F32", {kRows, kColumns, kTaps}, bytes}});
  const Checkpoint sound = open_checkpoint(folder / "sound.safetensors");
  WeightSource tap{.parts = {{&sound.at("conv"), 0, kRows}}, .frame = 2, .use = HEDDLE_USE_LINEAR};
  const auto number = [&](std::int64_t row, std::int64_t column) {
    return bytes.substr(std::size_t(4 * ((row * kColumns + column) * kTaps + 1)), 4);
  };
  std::string plain, transposed;
  for (std::int64_t row = 0; row < kRows; ++row)
    for (std::int64_t column = 0; column < kColumns; ++column) plain += number(row, column);
  for (std::int64_t column = 0; column < kColumns; ++column)
    for (std::int64_t row = 0; row < kRows; ++row) transposed += number(row, column);
  BOOST_TEST(tap.info().shape[0] == kRows);
  BOOST_TEST(bytes_at(host_weight(tap).parts.at(0), plain.size()) == plain);
  const Hash128 second = tap.key({});
  tap.frame = -2;
  BOOST_TEST(tap.info().rank == 2);
  BOOST_TEST(tap.info().shape[0] == kColumns);
  BOOST_TEST(tap.info().shape[1] == kRows);
  BOOST_TEST(is_made(tap));
  BOOST_TEST(bytes_at(host_weight(tap).parts.at(0), transposed.size()) == transposed);
  BOOST_TEST((tap.key({}) != second));
  tap.frame = -5;
  BOOST_TEST(std::string(refusal_of([&] { tap.info(); }).what()).find("'conv' (3, 2, 4)") == 0);
  tap.frame = -1;
  tap.parts = {{&sound.at("conv"), 0, 2}};
  BOOST_TEST(std::string(refusal_of([&] { tap.info(); }).what()).find("one whole tensor") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(parts_of_several_types_are_joined_as_f32_when_one_is_in_blocks) {
  WeightSource joined = source("q8", 0, 6);
  joined.parts.push_back({&file.at("other"), 0, 2});
  BOOST_TEST(joined.info().dtype == HEDDLE_F32);
  joined.parts = {{&file.at("half"), 0, 2}, {&file.at("q8"), 0, 6}};
  BOOST_TEST(joined.info().dtype == HEDDLE_F32);
  BOOST_TEST(host_weight(joined).parts.at(1).info.dtype == HEDDLE_Q8_0);
  joined.parts = {{&file.at("half"), 0, 1}, {&file.at("half"), 1, 2}};
  BOOST_TEST(joined.info().dtype == HEDDLE_F16);
}

BOOST_AUTO_TEST_CASE(sums_of_halves_and_patches_are_told_as_f32) {
  write_safetensors(folder / "patch.safetensors",
                    {{"up", "F32", {1, 1}, bytes_of_floats({1})},
                     {"down", "F32", {1, 64}, bytes_of_floats(std::vector<float>(64, 1))}});
  const Checkpoint patch = open_checkpoint(folder / "patch.safetensors");
  const auto patches =
      WeightPatches::extend(nullptr, file, patch,
                            std::vector<WeightPatch>{{"up", "down", 1, {{"half", 1, 2}}},
                                                     {"up", "down", 1, {{"q8", 1, 2}}}});
  const auto told = [&](const char* name, std::int64_t begin, std::int64_t end) {
    WeightSource rows = source(name, begin, end);
    rows.patches = patches;
    BOOST_TEST(rows.info().dtype == source(name, begin, end).info().dtype);
    return rows.device_info().dtype;
  };
  BOOST_TEST(told("half", 0, 2) == HEDDLE_F32);
  BOOST_TEST(told("half", 0, 1) == HEDDLE_F16);  // no patch touches these rows
  BOOST_TEST(told("q8", 0, 6) == HEDDLE_Q8_0);   // patched beside
}

BOOST_AUTO_TEST_CASE(devices_are_told_of_the_matrices_of_a_scaled_fp8_checkpoint) {
  const Checkpoint scaled =
      open_checkpoint(
          folder.write("half.gguf",
                       gguf_bytes({.tensors = {{"half", kGgmlF16, {64, 2}, counted(256)}}})))
          .scale_to_fp8();
  WeightSource matrix{.parts = {{&scaled.at("half"), 0, 2}}, .use = HEDDLE_USE_LINEAR};
  BOOST_TEST(matrix.device_use() == HEDDLE_USE_LINEAR_FP8);
  BOOST_TEST(matrix.info().dtype == HEDDLE_F8_E4M3);
  BOOST_TEST(host_weight(matrix).use == HEDDLE_USE_LINEAR_FP8);
  BOOST_TEST(host_weight(matrix).parts.at(0).info.dtype == HEDDLE_F16);
  WeightSource vector = matrix;
  vector.use = HEDDLE_USE_VECTOR;
  BOOST_TEST(vector.device_use() == HEDDLE_USE_VECTOR);
  WeightSource factor = matrix;  // of what is added beside a matrix
  factor.places = {{}};
  BOOST_TEST(factor.device_use() == HEDDLE_USE_LINEAR);
  BOOST_TEST(source("half", 0, 2).device_use() == HEDDLE_USE_LINEAR);
}

// So a model and the same one with another file beside it share what they load.
BOOST_AUTO_TEST_CASE(a_joined_checkpoint_keeps_the_keys_of_its_weights) {
  write_safetensors(folder / "patch.safetensors", {{"more", "F32", {1}, "abcd"}});
  const Checkpoint joined = file.join(open_checkpoint(folder / "patch.safetensors"), "p.");
  const auto key = [](const Checkpoint& of, const char* name) {
    return WeightSource{.parts = {{&of.at(name), 0, 1}}, .use = HEDDLE_USE_LINEAR}.key(
        of.identity());
  };
  BOOST_TEST((key(joined, "q8") == key(file, "q8")));
  BOOST_TEST((key(joined, "q8") != key(joined, "other")));
  BOOST_TEST((key(joined, "p.more") != key(joined, "q8")));
}

BOOST_AUTO_TEST_SUITE_END()
