// Merged weights as a file: the bytes that PyTorch makes (make_merge_goldens.py), with metadata.
#include "engine/memory/model_file.h"

#include <boost/test/unit_test.hpp>
#include <cstring>

#include "engine/base/error.h"
#include "engine/tensor/numbers.h"
#include "tests/support/golden_files.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::engine;
using heddle::test::TemporaryFolder;

namespace {

struct SavingGoldens {
  TemporaryFolder folder;
  Checkpoint all =
      open_checkpoint(heddle::test::tests_folder() / "engine/memory/merge_goldens.safetensors");
  Checkpoint a = all.strip_prefix("a."), b = all.strip_prefix("b.");

  // Whole tensors under their names.
  static std::vector<SavedTensor> tensors_of(const Checkpoint& file, const std::string& prefix,
                                             const WeightPatches* patches = nullptr) {
    std::vector<SavedTensor> list;
    for (const TensorView& tensor : file.tensors())
      list.push_back({prefix + tensor.name, &file, patches, {{tensor.name}}, {}});
    return list;
  }
  static void check_same(const TensorView& is, const TensorView& expected) {
    BOOST_TEST((is.dtype == expected.dtype), is.name);
    BOOST_TEST(is.shape == expected.shape);
    BOOST_TEST_REQUIRE(is.data.size() == expected.data.size());
    BOOST_TEST((std::memcmp(is.data.data(), expected.data.data(), is.data.size()) == 0), is.name);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(model_file, SavingGoldens)

BOOST_AUTO_TEST_CASE(merged_weights_are_rounded_once_as_pytorch_rounds) {
  std::vector<WeightPatch> list;
  for (const TensorView& tensor : a.tensors())
    list.push_back({tensor.name, "", 1 - 0.3, {{tensor.name}}, 0.3});
  const auto patches = WeightPatches::merge(nullptr, a, {b, nullptr}, list);
  const auto path = folder / "merged.safetensors";
  BOOST_TEST(create_model_file(path, tensors_of(a, "model.", patches.get()),
                               {{"format", "pt"}, {"prompt", "{\"1\": 2}"}}));
  const Checkpoint made = open_checkpoint(path);
  BOOST_TEST(made.metadata("prompt").value_or("") == "{\"1\": 2}");
  BOOST_TEST(made.metadata("format").value_or("") == "pt");
  BOOST_TEST(made.tensors().size() == a.tensors().size());
  for (const TensorView& tensor : a.tensors())
    check_same(made.at("model." + tensor.name), all.at("saved." + tensor.name));
}

BOOST_AUTO_TEST_CASE(unpatched_weights_are_copied_and_a_name_is_taken_once) {
  const auto path = folder / "plain.safetensors";
  std::vector<SavedTensor> both = tensors_of(a, "a.");
  for (SavedTensor& saved : tensors_of(b, "b.")) both.push_back(std::move(saved));
  BOOST_TEST(create_model_file(path, both, {}));
  const Checkpoint made = open_checkpoint(path);
  BOOST_TEST(made.tensors().size() == both.size());
  for (const TensorView& tensor : made.tensors()) check_same(tensor, all.at(tensor.name));
  BOOST_TEST(!create_model_file(path, both, {}));
  std::vector<SavedTensor> twice = tensors_of(a, "");
  twice.push_back(twice.front());
  BOOST_CHECK_THROW(create_model_file(folder / "twice.safetensors", twice, {}), Error);
  BOOST_TEST(!std::filesystem::exists(folder / "twice.safetensors"));
}

BOOST_AUTO_TEST_CASE(rows_are_put_together_in_their_order_and_shape) {
  const TensorView& half = a.at("half");  // 9 rows of 40
  const auto path = folder / "rows.safetensors";
  const std::vector<SavedTensor> tensors{
      {"turned", &a, nullptr, {{"half", 5, -1}, {"half", 0, 5}}, {}},
      {"filter", &a, nullptr, {{"half", 2, 4}}, {2, 40, 1, 1}}};
  BOOST_TEST(create_model_file(path, tensors, {}));
  const Checkpoint made = open_checkpoint(path);
  BOOST_TEST(made.at("turned").shape == half.shape);
  const std::size_t row = half.data.size() / 9;
  const auto* const turned = made.at("turned").data.data();
  BOOST_TEST((std::memcmp(turned, half.data.data() + 5 * row, 4 * row) == 0));
  BOOST_TEST((std::memcmp(turned + 4 * row, half.data.data(), 5 * row) == 0));
  BOOST_TEST((made.at("filter").shape == std::vector<std::int64_t>{2, 40, 1, 1}));
  BOOST_TEST(
      (std::memcmp(made.at("filter").data.data(), half.data.data() + 2 * row, 2 * row) == 0));
  const std::vector<std::vector<SavedTensor>> wrong{
      {{"rows", &a, nullptr, {{"half", 5, 10}}, {}}},
      {{"rows", &a, nullptr, {{"half", 5, 4}}, {}}},
      {{"rows", &a, nullptr, {}, {}}},
      {{"rows", &a, nullptr, {{"half"}, {"wide"}}, {}}},
      {{"rows", &a, nullptr, {{"half"}}, {3, 3}}}};
  for (const auto& each : wrong)
    BOOST_CHECK_THROW(create_model_file(folder / "wrong.safetensors", each, {}), Error);
  BOOST_TEST(!std::filesystem::exists(folder / "wrong.safetensors"));
}

BOOST_AUTO_TEST_CASE(another_type_is_rounded_to_and_rows_are_read_as_they_are_made) {
  std::vector<WeightPatch> list;
  for (const TensorView& tensor : a.tensors())
    list.push_back({tensor.name, "", 1 - 0.3, {{tensor.name}}, 0.3});
  const auto patches = WeightPatches::merge(nullptr, a, {b, nullptr}, list);
  for (const WeightPatches* with : {static_cast<const WeightPatches*>(nullptr), patches.get()}) {
    std::vector<SavedTensor> tensors = tensors_of(a, "", with);
    for (SavedTensor& saved : tensors) saved.dtype = DType::f16;
    const auto path = folder / (with == nullptr ? "plain16.safetensors" : "merged16.safetensors");
    BOOST_TEST(create_model_file(path, tensors, {}));
    const Checkpoint made = open_checkpoint(path);
    for (const SavedTensor& saved : tensors) {
      const TensorView& tensor = made.at(saved.name);
      BOOST_TEST((tensor.dtype == DType::f16), saved.name);
      std::vector<float> values(tensor.data.size() / 2);
      read_rows(saved, values);
      if (with == nullptr) {
        std::vector<float> own(values.size());
        to_floats(a.at(saved.name).dtype, a.at(saved.name).data, own.data());
        BOOST_TEST((values == own), saved.name);
      }
      std::vector<std::byte> rounded(tensor.data.size());
      from_floats(DType::f16, values, rounded.data());
      BOOST_TEST((std::memcmp(rounded.data(), tensor.data.data(), rounded.size()) == 0),
                 saved.name);
      std::vector<float> few(values.size() - 1);
      BOOST_CHECK_THROW(read_rows(saved, few), Error);
    }
  }
  // Of merged ones the goldens have what PyTorch rounds to their own type.
  std::vector<float> values(a.at("half").data.size() / 2);
  read_rows({"half", &a, patches.get(), {{"half"}}, {}}, values);
  std::vector<std::byte> rounded(a.at("half").data.size());
  from_floats(a.at("half").dtype, values, rounded.data());
  BOOST_TEST((std::memcmp(rounded.data(), all.at("saved.half").data.data(), rounded.size()) == 0));
}

BOOST_AUTO_TEST_CASE(sums_are_not_rounded_to_8_bits) {
  const auto file = folder / "f8.safetensors";
  heddle::test::write_safetensors(
      file,
      {{"w", "F8_E4M3", {4}, std::string(4, '\x38')}, {"u", "F32", {4}, std::string(16, '\0')}},
      {});
  const Checkpoint quantised = open_checkpoint(file);
  const std::vector<WeightPatch> more{{"u", "", 1, {{"w"}}}};
  const auto patched = WeightPatches::extend(nullptr, quantised, quantised, more);
  const auto saved = tensors_of(quantised, "", patched.get());
  BOOST_CHECK_THROW(create_model_file(folder / "x.safetensors", saved, {}), Error);
  BOOST_TEST(create_model_file(folder / "plain.safetensors", tensors_of(quantised, ""), {}));
}

BOOST_AUTO_TEST_SUITE_END()
