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

BOOST_AUTO_TEST_SUITE_END()
