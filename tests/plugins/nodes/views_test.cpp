// Views of tensors as plugins take them.
#include "tests/plugins/nodes/node_fixture.h"

BOOST_FIXTURE_TEST_SUITE(views, heddle::test::NodeFixture)

BOOST_AUTO_TEST_CASE(rows_with_gaps_keep_them_behind_axes_of_one_element) {
  const heddle::Results results = run_whole(
      R"({"view": {"class_type": "test.split_view", "inputs": {}},
          "look": {"class_type": "test.look", "inputs": {"value": ["view", 0]}}})",
      {"view.out"});
  BOOST_TEST(results.floats("view.out") == (std::vector<float>{1, 2, 5, 6, 9, 10}));
}

BOOST_AUTO_TEST_SUITE_END()
