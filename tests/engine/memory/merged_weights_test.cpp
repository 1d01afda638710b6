// Weights of two models as one: the very numbers that PyTorch makes (make_merge_goldens.py).
#include <boost/test/unit_test.hpp>
#include <cstring>

#include "engine/memory/weight_source.h"
#include "engine/tensor/shape.h"
#include "tests/support/golden_files.h"

using namespace heddle::engine;

namespace {

struct MergeGoldens {
  Checkpoint all =
      open_checkpoint(heddle::test::tests_folder() / "engine/memory/merge_goldens.safetensors");
  Checkpoint a = all.strip_prefix("a."), b = all.strip_prefix("b.");
  using Patches = std::shared_ptr<const WeightPatches>;

  std::vector<WeightPatch> patches(double keep, double add, bool has_up = true) const {
    std::vector<WeightPatch> list;
    for (const TensorView& tensor : a.tensors())
      list.push_back({has_up ? tensor.name : "", "", add, {{tensor.name}}, keep});
    return list;
  }

  // All rows, and some of them.
  static std::string made_of(const TensorView& tensor, const Patches& patches, std::int64_t begin,
                             std::int64_t end) {
    WeightSource source;
    source.parts = {{&tensor, begin, end}};
    source.patches = patches;
    const HostWeight host = host_weight(source);
    std::string bytes;
    for (const heddle_view& part : host.parts) {
      BOOST_TEST(part.info.dtype == HEDDLE_F32);
      bytes.append(static_cast<const char*>(part.data), dense_bytes(part.info));
    }
    return bytes;
  }

  void check(const std::string& kind, const Patches& patches) const {
    for (const TensorView& tensor : a.tensors()) {
      const TensorView& expected = all.at(kind + "." + tensor.name);
      const std::string numbers(reinterpret_cast<const char*>(expected.data.data()),
                                expected.data.size());
      const std::int64_t rows = tensor.shape[0];
      BOOST_TEST((made_of(tensor, patches, 0, rows) == numbers), kind << "." << tensor.name);
      const std::size_t row = numbers.size() / std::size_t(rows);
      BOOST_TEST((made_of(tensor, patches, 1, 3) == numbers.substr(row, 2 * row)),
                 kind << "." << tensor.name << ", two rows");
    }
  }
};

// Every number less the first of its column: of rows that stand apart nothing is known.
struct LessFirstRow : RowChange {
  void apply(std::int64_t rows, std::int64_t width, float* numbers) const override {
    for (std::int64_t row = rows; row-- > 0;)
      for (std::int64_t i = 0; i < width; ++i) numbers[row * width + i] -= numbers[i];
  }
  Hash128 identity() const override { return Hasher().add("less the first row").finish(); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(merged_weights, MergeGoldens)

BOOST_AUTO_TEST_CASE(shares_of_two_models_are_pytorchs_numbers) {
  check("simple", WeightPatches::merge(nullptr, a, {b, nullptr}, patches(0.3, 1 - 0.3)));
  check("subtract", WeightPatches::merge(nullptr, a, {b, nullptr}, patches(1.7, -1.7)));
  check("factor", WeightPatches::extend(nullptr, a, a, patches(0.37, 0, false)));
}

BOOST_AUTO_TEST_CASE(a_merged_model_is_added_as_its_patches_make_it) {
  // a + (0.25 * b + 0.5 * a) as terms of their own.
  const Patches inner = WeightPatches::merge(nullptr, b, {a, nullptr}, patches(0.25, 0.5));
  const Patches outer = WeightPatches::merge(nullptr, a, {b, inner.get()}, patches(1, 1));
  const auto terms = outer->of("bias");
  BOOST_TEST_REQUIRE(terms.size() == 2u);
  BOOST_TEST((terms[0].up == &b.at("bias")));
  BOOST_TEST(terms[0].scale == 0.25);
  BOOST_TEST(terms[0].keep == 1);
  BOOST_TEST((terms[1].up == &a.at("bias")));
  BOOST_TEST(terms[1].scale == 0.5);
  BOOST_TEST(terms[1].keep == 1);
  BOOST_TEST(outer->files().size() == 2u);
}

BOOST_AUTO_TEST_CASE(what_is_kept_of_a_weight_is_part_of_its_key) {
  const auto key = [&](double keep, double add) {
    WeightSource source;
    source.parts = {{&a.at("bias"), 0, a.at("bias").shape[0]}};
    source.patches = WeightPatches::merge(nullptr, a, {b, nullptr}, patches(keep, add));
    return source.key(a.identity());
  };
  BOOST_TEST((key(0.5, 0.5) == key(0.5, 0.5)));
  BOOST_TEST((key(0.5, 0.5) != key(0.25, 0.5)));
  BOOST_TEST((key(0.5, 0.5) != key(1, 0.5)));
}

BOOST_AUTO_TEST_CASE(rows_of_a_change_are_made_of_all_that_it_needs) {
  const TensorView& tensor = a.tensors().front();
  const std::int64_t rows = tensor.shape[0];
  BOOST_TEST_REQUIRE(rows >= 4);
  WeightPatch change;
  change.rows = {{tensor.name}};
  change.change = std::make_shared<LessFirstRow>();
  const WeightPatch twice{"", "", 0, {{tensor.name}}, 2};
  const Patches doubled = WeightPatches::extend(nullptr, a, a, std::vector{twice});
  const Patches both = WeightPatches::extend(nullptr, a, a, std::vector{twice, change});
  const std::string before = made_of(tensor, doubled, 0, rows),
                    whole = made_of(tensor, both, 0, rows);
  std::vector<float> expected(before.size() / sizeof(float));
  std::memcpy(expected.data(), before.data(), before.size());
  LessFirstRow().apply(rows, std::int64_t(expected.size()) / rows, expected.data());
  BOOST_TEST((std::memcmp(whole.data(), expected.data(), whole.size()) == 0));
  const std::size_t row = whole.size() / std::size_t(rows);
  BOOST_TEST((made_of(tensor, both, 1, 3) == whole.substr(row, 2 * row)));

  WeightSource some;
  some.parts = {{&tensor, 1, 3}};
  const Hash128 plain = some.key({});
  BOOST_TEST(file_parts(some)[0].bytes == 2 * tensor.data.size() / std::size_t(rows));
  some.patches = both;
  BOOST_TEST(file_parts(some)[0].bytes == tensor.data.size());
  BOOST_TEST((some.key({}) != plain));
}

BOOST_AUTO_TEST_SUITE_END()
