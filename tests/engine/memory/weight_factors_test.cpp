// What is added beside a quantised matrix: two factors for the very rows and columns of the matrix,
// whose bytes stay those of the file.
#include "engine/memory/weight_factors.h"

#include <boost/test/unit_test.hpp>
#include <cstring>

#include "engine/base/error.h"
#include "heddle/abi/node.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/refusal.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::engine;
using namespace heddle::test;

namespace {

using Rows = std::vector<std::vector<float>>;

struct FactorsFixture {
  TemporaryFolder folder;
  Checkpoint model = open_checkpoint(folder.write(
      "m.gguf", gguf_bytes({.tensors = {{"q", kGgmlQ8_0, {64, 6}, std::string(6 * 68, '\1')},
                                        {"k", kGgmlQ8_0, {64, 2}, std::string(2 * 68, '\2')},
                                        {"half", kGgmlF16, {64, 2}, std::string(256, '\3')}}})));
  // down.x is x in every place; up's rows count up.
  Checkpoint lora = open_checkpoint(
      folder.write("l.safetensors",
                   safetensors_bytes({matrix("up", {6, 2}, 1), matrix("down", {2, 64}, 100),
                                      matrix("few", {2, 1}, 50), matrix("one", {1, 64}, 200)})));

  static FileTensor matrix(const std::string& name, std::vector<std::int64_t> shape, float first) {
    std::vector<float> values(std::size_t(shape[0] * shape[1]));
    for (float& value : values) value = first++;
    return {name, "F32", std::move(shape), bytes_of_floats(values)};
  }
  std::shared_ptr<const WeightPatches> patches(std::vector<WeightPatch> list) const {
    return WeightPatches::extend(nullptr, model, lora, list);
  }
  WeightSource source(std::vector<WeightPatch> list, std::int32_t use = HEDDLE_USE_LINEAR) const {
    return {.parts = {{&model.at("q"), 0, 6}}, .use = use, .patches = patches(std::move(list))};
  }
  static Rows numbers(const WeightSource& source) {
    const HostWeight host = host_weight(source);
    const heddle_view& part = host.parts.at(0);
    BOOST_TEST_REQUIRE(part.info.dtype == HEDDLE_F32);
    const auto* at = static_cast<const float*>(part.data);
    Rows rows;
    for (std::int64_t r = 0; r < part.info.shape[0]; ++r, at += part.info.shape[1])
      rows.emplace_back(at, at + part.info.shape[1]);
    return rows;
  }
};

const WeightPatch kBoth{"up", "down", 0.5, {{"q"}}};
const WeightPatch kFew{"few", "one", 2, {{"q", 3, 5}}};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(factors, FactorsFixture)

BOOST_AUTO_TEST_CASE(the_scale_is_in_one_factor_and_the_matrix_is_the_files) {
  const WeightSource patched = source({kBoth});
  const auto factors = weight_factors(patched);
  BOOST_TEST_REQUIRE(factors.has_value());
  const Rows down = numbers(factors->down), up = numbers(factors->up);
  BOOST_TEST_REQUIRE(down.size() == 2u);
  BOOST_TEST(down[0][0] == 100.0f);
  BOOST_TEST(down[1][63] == 227.0f);
  BOOST_TEST((up == Rows{{0.5f, 1}, {1.5f, 2}, {2.5f, 3}, {3.5f, 4}, {4.5f, 5}, {5.5f, 6}}));
  const HostWeight host = host_weight(patched);
  BOOST_TEST(host.made_bytes == 0u);
  BOOST_TEST(host.parts.at(0).data == model.at("q").data.data());
  BOOST_TEST(patched.info().dtype == HEDDLE_Q8_0);
}

BOOST_AUTO_TEST_CASE(products_of_some_rows_stand_beside_the_others_in_the_same_factors) {
  const auto factors = weight_factors(source({kBoth, kFew}));
  BOOST_TEST_REQUIRE(factors.has_value());
  BOOST_TEST(numbers(factors->down).at(2)[5] == 205.0f);
  BOOST_TEST((
      numbers(factors->up) ==
      Rows{
          {0.5f, 1, 0}, {1.5f, 2, 0}, {2.5f, 3, 0}, {3.5f, 4, 100}, {4.5f, 5, 102}, {5.5f, 6, 0}}));
}

BOOST_AUTO_TEST_CASE(a_part_of_the_matrix_has_the_part_of_the_factors_that_belongs_to_it) {
  WeightSource part = source({kBoth, kFew});
  part.parts = {{&model.at("q"), 4, 6}, {&model.at("k"), 0, 1}};
  part.columns = {{32, 64}};
  const auto factors = weight_factors(part);
  BOOST_TEST_REQUIRE(factors.has_value());
  const Rows down = numbers(factors->down);
  BOOST_TEST(down.size() == 3u);
  BOOST_TEST(down[0].size() == 32u);
  BOOST_TEST(down[0][0] == 132.0f);
  BOOST_TEST((numbers(factors->up) == Rows{{4.5f, 5, 102}, {5.5f, 6, 0}, {0, 0, 0}}));
  part.parts = {{&model.at("k"), 0, 2}};
  BOOST_TEST(!weight_factors(part).has_value());
}

BOOST_AUTO_TEST_CASE(two_tensors_that_share_a_product_have_its_first_factor_once) {
  WeightSource both = source({{"up", "down", 1, {{"k", 0, 2}, {"q", 0, 4}}}});
  both.parts = {{&model.at("q"), 0, 6}, {&model.at("k"), 0, 2}};
  const auto factors = weight_factors(both);
  BOOST_TEST_REQUIRE(factors.has_value());
  BOOST_TEST(numbers(factors->down).size() == 2u);
  BOOST_TEST((numbers(factors->up) ==
              Rows{{5, 6}, {7, 8}, {9, 10}, {11, 12}, {0, 0}, {0, 0}, {1, 2}, {3, 4}}));
}

BOOST_AUTO_TEST_CASE(another_strength_is_another_second_factor_and_nothing_else) {
  const auto at = [&](double scale) { return source({{"up", "down", scale, {{"q"}}}}); };
  const Hash128 id = model.identity();
  const auto one = weight_factors(at(1)), two = weight_factors(at(2));
  BOOST_TEST((at(1).key(id) == at(2).key(id)));
  BOOST_TEST((at(1).key(id) ==
              WeightSource{.parts = {{&model.at("q"), 0, 6}}, .use = HEDDLE_USE_LINEAR}.key(id)));
  BOOST_TEST((one->down.key(id) == two->down.key(id)));
  BOOST_TEST((one->up.key(id) != two->up.key(id)));
  BOOST_TEST((one->up.key(id) != one->down.key(id)));
}

BOOST_AUTO_TEST_CASE(parts_of_16_bits_in_the_same_matrix_are_patched_on_their_way) {
  WeightSource mixed = source({kBoth, {"few", "one", 1, {{"half"}}}});
  mixed.parts = {{&model.at("q"), 0, 6}, {&model.at("half"), 0, 2}};
  const auto factors = weight_factors(mixed);
  BOOST_TEST_REQUIRE(factors.has_value());
  BOOST_TEST((numbers(factors->up).at(7) == std::vector<float>{0, 0}));
  const HostWeight host = host_weight(mixed);
  BOOST_TEST(host.parts.at(0).info.dtype == HEDDLE_Q8_0);
  BOOST_TEST(host.parts.at(1).info.dtype == HEDDLE_F32);
}

BOOST_AUTO_TEST_CASE(tables_in_blocks_and_whole_differences_are_refused) {
  const Error table = refusal_of([&] { source({kBoth}, HEDDLE_USE_TABLE).info(); });
  BOOST_TEST((table.code() == Code::unsupported));
  BOOST_TEST(std::string(table.what()).starts_with("'q' is a table of q8_0"));
  folder.write("w.safetensors", safetensors_bytes({matrix("whole", {6, 64}, 1)}));
  const Checkpoint file = open_checkpoint(folder / "w.safetensors");
  const Error whole = refusal_of([&] {
    WeightPatches::extend(nullptr, model, file,
                          std::vector<WeightPatch>{{"whole", "", 1, {{"q"}}}});
  });
  BOOST_TEST((whole.code() == Code::unsupported));
  BOOST_TEST(std::string(whole.what()).find("only products can be added") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
