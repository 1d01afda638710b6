// Every form of ComfyUI's quantised files against the numbers that its own library makes of them
// (make_packed_goldens.py), and what does not fit its form.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <functional>
#include <map>

#include "engine/base/error.h"
#include "engine/files/checkpoint.h"
#include "engine/files/joined_dtype.h"
#include "engine/files/weight_patches.h"
#include "engine/memory/host_weights.h"
#include "engine/memory/weight_factors.h"
#include "engine/memory/weight_source.h"
#include "heddle/abi/node.h"
#include "tests/support/golden_files.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using namespace heddle::test;
using engine::Checkpoint;
using engine::DType;
using engine::TensorView;

namespace {

struct PackedFormsFixture {
  const Checkpoint file =
      engine::open_checkpoint(tests_folder() / "engine/files/packed.safetensors");

  const TensorView& weight(const std::string& name) const { return file.at(name + ".weight"); }

  std::vector<float> values(const std::string& name) const {
    const TensorView& golden = file.at(name + ".values");
    std::vector<float> all(golden.data.size() / sizeof(float));
    std::memcpy(all.data(), golden.data.data(), golden.data.size());
    return all;
  }

  // The file's tensors of a module, one of which is changed.
  std::string refusal(const std::string& name,
                      const std::function<void(std::map<std::string, FileTensor>&)>& change) const {
    static const std::map<DType, std::string> kNames = {{DType::u8, "U8"},
                                                        {DType::i8, "I8"},
                                                        {DType::f8_e4m3, "F8_E4M3"},
                                                        {DType::bf16, "BF16"},
                                                        {DType::f32, "F32"}};
    std::map<std::string, FileTensor> parts;
    for (const TensorView& t : file.with_prefix(name + ".")) {
      std::vector<std::int64_t> shape = t.shape;
      if (t.packed != nullptr) shape[1] = std::int64_t(t.data.size()) / shape[0];
      parts[t.name] = {t.name, kNames.at(t.dtype), shape,
                       std::string(reinterpret_cast<const char*>(t.data.data()), t.data.size())};
    }
    change(parts);
    std::vector<FileTensor> tensors;
    for (const auto& [key, tensor] : parts) tensors.push_back(tensor);
    const TemporaryFolder folder;
    write_safetensors(folder / "m.safetensors", tensors);
    try {
      engine::open_checkpoint(folder / "m.safetensors");
    } catch (const engine::Error& error) {
      return error.full();
    }
    return "";
  }
};

struct Wanted {
  const char* name;
  DType linear;  // of a matrix; f32: widened on its way
};
constexpr Wanted kWanted[] = {{"nvfp4", DType::nvfp4},
                              {"nvfp4_narrow", DType::f32},
                              {"nvfp4_awq", DType::nvfp4},
                              {"mxfp8", DType::mxfp8},
                              {"mxfp8_narrow", DType::f32},
                              {"w4a4", DType::i4_rotated},
                              {"w4a4_narrow", DType::f32},
                              {"w4a8", DType::i4_coded},
                              {"w4a8_levels", DType::i8_rotated},
                              {"w4a8_uniform", DType::i8_rotated},
                              {"w4a8_narrow", DType::f32},
                              {"w6a8", DType::i8_rotated},
                              {"awq", DType::i4_grouped},
                              {"awq_narrow", DType::f32}};

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(packed_forms, PackedFormsFixture)

BOOST_AUTO_TEST_CASE(every_number_is_that_of_comfyuis_own_library) {
  for (const Wanted& wanted : kWanted) {
    const TensorView& t = weight(wanted.name);
    const std::vector<float> golden = values(wanted.name);
    BOOST_TEST_REQUIRE((t.packed != nullptr), wanted.name);
    BOOST_TEST_REQUIRE(std::size_t(t.shape[0] * t.shape[1]) == golden.size(), wanted.name);
    BOOST_TEST((engine::matrix_dtype(t) == wanted.linear), wanted.name);
    const std::size_t bytes = t.data.size() / std::size_t(t.shape[0]);
    std::vector<float> row(std::size_t(t.shape[1]));
    std::size_t differ = 0;
    for (std::int64_t r = 0; r < t.shape[0]; ++r) {
      t.packed->widen(r, t.data.subspan(std::size_t(r) * bytes, bytes), row.data());
      for (std::size_t i = 0; i < row.size(); ++i)
        differ += row[i] != golden[std::size_t(r) * row.size() + i];
    }
    BOOST_TEST(differ == 0u, wanted.name << ": " << differ << " of " << golden.size());
  }
}

BOOST_AUTO_TEST_CASE(matrices_travel_in_blocks_and_tables_and_narrow_ones_widened) {
  for (const Wanted& wanted : kWanted) {
    const TensorView& t = weight(wanted.name);
    engine::WeightSource source;
    source.use = HEDDLE_USE_LINEAR;
    source.parts = {{&t, 1, 3}};
    BOOST_TEST((DType(source.info().dtype) == wanted.linear), wanted.name);
    BOOST_TEST(engine::is_made(source));
    const bool in_blocks = wanted.linear != DType::f32;
    BOOST_TEST(engine::is_patched_beside(t, HEDDLE_USE_LINEAR) == in_blocks, wanted.name);
    const engine::HostWeight host = engine::host_weight(source);
    BOOST_TEST_REQUIRE(host.parts.size() == 1u);
    BOOST_TEST(host.made_bytes ==
               std::uint64_t(engine::dtype_bytes(wanted.linear, 2 * t.shape[1])));
    if (!in_blocks) {
      const std::vector<float> golden = values(wanted.name);
      const auto* made = static_cast<const float*>(host.parts[0].data);  // -0 is 0
      BOOST_TEST(std::equal(made, made + 2 * t.shape[1], golden.begin() + t.shape[1]), wanted.name);
    }
    source.use = HEDDLE_USE_TABLE;
    BOOST_TEST(source.info().dtype == HEDDLE_BF16);
  }
}

BOOST_AUTO_TEST_CASE(factors_of_columns_stand_beside_their_blocks) {
  const TensorView &with = weight("nvfp4_awq"), &without = weight("nvfp4");
  engine::WeightSource source;
  source.use = HEDDLE_USE_LINEAR;
  source.parts = {{&with, 2, 5}};
  const auto scale = engine::column_scale(source);
  BOOST_TEST_REQUIRE(scale.has_value());
  const TensorView& given = file.at("nvfp4_awq.pre_quant_scale");
  BOOST_TEST((scale->info().rank == 1 && scale->info().shape[0] == with.shape[1]));
  const engine::HostWeight host = engine::host_weight(*scale);
  BOOST_TEST(std::memcmp(host.parts.at(0).data, given.data.data(), given.data.size()) == 0);
  source.columns = {{0, 256}};
  BOOST_TEST(engine::column_scale(source)->parts.at(0).end == 256);
  source.parts = {{&without, 0, 1}};
  source.columns.clear();
  BOOST_TEST(!engine::column_scale(source).has_value());
  // Rows that have other factors, or none, are widened together with them.
  const TensorView* const both[] = {&with, &without};
  BOOST_TEST((engine::joined_dtype(both, HEDDLE_USE_LINEAR) == DType::f32));
}

// What has been loaded is found again when another checkpoint has been joined to theirs.
BOOST_AUTO_TEST_CASE(factors_of_columns_keep_their_key_in_joined_checkpoints) {
  const TemporaryFolder folder;
  write_safetensors(folder / "other.safetensors", {{"b", "U8", {1}, "B"}});
  const Checkpoint other = engine::open_checkpoint(folder / "other.safetensors"),
                   joined = file.join(other, "p."), behind = other.join(file, "p.");
  const auto key_in = [](const Checkpoint& from, const std::string& name) {
    const TensorView& matrix = from.at(name);
    engine::WeightSource source;
    source.use = HEDDLE_USE_LINEAR;
    source.parts = {{&matrix, 0, matrix.shape[0]}};
    return engine::column_scale(source)->key(from.identity());
  };
  const engine::Hash128 alone = key_in(file, "nvfp4_awq.weight");
  BOOST_TEST((key_in(joined, "nvfp4_awq.weight") == alone));
  BOOST_TEST((key_in(behind, "p.nvfp4_awq.weight") == alone));
  // The same name and bytes in another file are others.
  std::filesystem::copy(tests_folder() / "engine/files/packed.safetensors",
                        folder / "copy.safetensors");
  BOOST_TEST(
      (key_in(engine::open_checkpoint(folder / "copy.safetensors"), "nvfp4_awq.weight") != alone));
}

BOOST_AUTO_TEST_CASE(read_ahead_asks_for_the_bytes_of_the_rows) {
  const TensorView& t = weight("nvfp4");
  const engine::FilePart part = engine::file_part(t, 2, 5);
  BOOST_TEST(part.offset == t.file_offset() + 2 * 256);
  BOOST_TEST(part.bytes == 3u * 256);
}

BOOST_AUTO_TEST_CASE(a_cast_leaves_them_as_they_are) {
  const Checkpoint cast = file.cast(DType::f8_e5m2);
  BOOST_TEST(!cast.at("mxfp8.weight").cast.has_value());
  BOOST_TEST(cast.at("nvfp4.weight_scale_2").cast.has_value());
}

BOOST_AUTO_TEST_CASE(they_are_not_added_to_other_weights) {
  const engine::WeightPatch patch{
      .up = "mxfp8_narrow.weight", .down = "", .rows = {{.tensor = "mxfp8_narrow.values"}}};
  BOOST_CHECK_EXCEPTION(engine::WeightPatches::extend(nullptr, file, file, {&patch, 1}),
                        engine::Error, [](const engine::Error& error) {
                          return mentions(error.full(), "'mxfp8_narrow.weight' (32, 96) is packed");
                        });
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_its_form_is_refused_by_name) {
  using Parts = std::map<std::string, FileTensor>;
  BOOST_TEST(refusal("nvfp4", [](Parts&) {}) == "");
  BOOST_TEST(mentions(refusal("nvfp4", [](Parts& p) { p.erase("nvfp4.weight_scale_2"); }),
                      "has no 'nvfp4.weight_scale_2' beside it"));
  const std::string few = refusal("nvfp4", [](Parts& p) {
    FileTensor& scales = p["nvfp4.weight_scale"];
    scales.shape = {16, 32};
    scales.bytes.resize(512);
  });
  for (const char* word : {"m.safetensors", "'nvfp4.weight' (16, 256) of u8, quantised as nvfp4",
                           "(16, 32) of f8_e4m3", "4096 of f8_e4m3 are wanted"})
    BOOST_TEST(mentions(few, word), few);
  BOOST_TEST(mentions(refusal("nvfp4", [](Parts& p) { p["nvfp4.weight"].dtype = "I8"; }),
                      "is not what that is: a matrix of u8"));
  BOOST_TEST(mentions(
      refusal("w4a8",
              [](Parts& p) {
                p["w4a8.weight_correction"] = {"w4a8.weight_correction", "BF16", {1}, "ab"};
              }),
      "has the summands 'w4a8.weight_correction'"));
  BOOST_TEST(mentions(refusal("w4a8",
                              [](Parts& p) {
                                p["w4a8.weight_s_rel"].shape = {6, 16};
                              }),
                      "has scales for 256 numbers of a row"));
  BOOST_TEST(mentions(refusal("awq",
                              [](Parts& p) {
                                p["awq.weight_zeros"].shape = {3, 8};
                              }),
                      "(8, 3) is wanted"));
}

BOOST_AUTO_TEST_SUITE_END()
