// Weights of several entries of a conditioning, and the entries that areas add, against PyTorch
// (make_patch_goldens.py) and by what they have to be.
#include "plugins/samplers/cond_weights.h"

#include <boost/test/unit_test.hpp>

#include "golden.h"

namespace {

using namespace heddle::samplers;
using testing::load;
using testing::numbers;

CondScope scope_with(std::optional<Box> area) {
  CondScope scope;
  scope.area = std::move(area);
  return scope;
}

ScopedEntry entry_at(std::size_t list, std::size_t item, std::optional<Box> area) {
  return {.scope = scope_with(std::move(area)), .list = list, .item = item};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(conditioning_weights)

BOOST_AUTO_TEST_CASE(strengths_masks_and_faded_areas_are_divided_by_their_sum) {
  const rapidjson::Document golden = load("patch_golden.json");
  const heddle::Shape grid = numbers<std::int64_t>(golden["grid"]);
  const GridMask mask{.rows = 2, .values = numbers<float>(golden["mask"])};
  for (const auto& given : golden["weights"].GetArray()) {
    std::vector<CondScope> scopes;
    for (const auto& entry : given["entries"].GetArray()) {
      CondScope& scope = scopes.emplace_back();
      scope.strength = entry["strength"].GetDouble();
      scope.has_mask = entry["mask"].GetBool();
      scope.mask_strength = 0.8;
      scope.is_default = entry["default"].GetBool();
      const auto area = numbers<std::int64_t>(entry["area"]);
      if (!area.empty()) scope.area = Box{{area[0], area[1]}, {area[2], area[3]}};
    }
    std::vector<Weighed> weighed;
    for (const CondScope& scope : scopes)
      weighed.push_back({&scope, scope.has_mask ? &mask : nullptr});
    const std::vector<CellWeights> weights = cell_weights(weighed, grid, 2);
    for (std::size_t k = 0; k < weights.size(); ++k) {
      // The golden has every seventh cell of both items, areas in the whole grid.
      std::vector<float> whole(std::size_t(2 * grid[0] * grid[1]), 0.0f);
      const Box& box = weights[k].box;
      std::size_t at = 0;
      for (std::int64_t item = 0; item < 2; ++item)
        for (std::int64_t y = 0; y < box.size[0]; ++y)
          for (std::int64_t x = 0; x < box.size[1]; ++x)
            whole[std::size_t((item * grid[0] + box.begin[0] + y) * grid[1] + box.begin[1] + x)] =
                weights[k].values[at++];
      const auto expected = numbers<double>(given["weights"][rapidjson::SizeType(k)]);
      for (std::size_t i = 0; i < expected.size(); ++i)
        BOOST_TEST(std::abs(whole[7 * i] - expected[i]) <= 1e-5,
                   given["name"].GetString() << ", entry " << k << ", cell " << 7 * i << ": "
                                             << whole[7 * i] << " is not " << expected[i]);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_default_entry_counts_only_where_something_is_left) {
  CondScope everywhere, rest;
  rest.is_default = true;
  const Weighed both[] = {{&everywhere, nullptr}, {&rest, nullptr}};
  BOOST_TEST(!cell_weights(both, {2, 2}, 1)[1].counts);
  everywhere.strength = 0.5;
  BOOST_TEST(cell_weights(both, {2, 2}, 1)[1].counts);
}

BOOST_AUTO_TEST_CASE(the_box_around_a_mask_has_eight_cells_a_side_at_least) {
  GridMask mask{.rows = 1, .values = std::vector<float>(20 * 30, 0.0f)};
  for (std::size_t y = 3; y < 17; ++y) mask.values[y * 30 + 5] = 0.5f;
  const Box box = bounds_of(mask, {20, 30});
  BOOST_TEST(box.size == (heddle::Shape{14, 8}));
  BOOST_TEST(box.begin == (heddle::Shape{3, 5}));
  mask.values.assign(mask.values.size(), 0.0f);
  BOOST_TEST(bounds_of(mask, {20, 30}).size == (heddle::Shape{8, 8}));
}

BOOST_AUTO_TEST_CASE(an_area_gets_an_opposite_with_the_texts_of_the_smallest_entry_around_it) {
  const Box area{{4, 4}, {2, 2}}, around{{8, 8}, {0, 0}}, wide{{16, 16}, {0, 0}};
  ScopedLists lists{{entry_at(0, 0, area)},
                    {entry_at(1, 0, {}), entry_at(1, 1, wide), entry_at(1, 2, around)}};
  add_opposites(lists);
  BOOST_REQUIRE(lists[1].size() == 4u);
  BOOST_TEST((lists[1][3].scope.area == area));
  BOOST_TEST(lists[1][3].item == 2u);
  // Nothing of the first list lies around the areas of the second.
  BOOST_TEST(lists[0].size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_list_that_has_the_area_gets_no_opposite) {
  const Box area{{4, 4}, {2, 2}};
  ScopedLists lists{{entry_at(0, 0, area)}, {entry_at(1, 0, area)}};
  add_opposites(lists);
  BOOST_TEST(lists[0].size() == 1u);
  BOOST_TEST(lists[1].size() == 1u);
}

BOOST_AUTO_TEST_CASE(an_entry_counts_at_both_ends_of_its_range) {
  CondScope scope;
  scope.start_sigma = 0.8;
  scope.end_sigma = 0.2;
  for (const double sigma : {0.8, 0.5, 0.2}) BOOST_TEST(scope.counts_at(sigma));
  for (const double sigma : {0.81, 0.19}) BOOST_TEST(!scope.counts_at(sigma));
}

BOOST_AUTO_TEST_CASE(an_area_is_cut_to_the_picture_and_refused_outside) {
  const Box box{{10, 10}, {4, 6}};
  BOOST_TEST(clamped(box, {8, 8}).size == (heddle::Shape{4, 2}));
  BOOST_CHECK_THROW(clamped(box, {4, 8}), heddle::Error);
}

BOOST_AUTO_TEST_SUITE_END()
