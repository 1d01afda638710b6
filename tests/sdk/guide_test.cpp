// The guide's blocks of code (sdk/guide), compiled as they stand there and run.
#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "heddle/testing/node_runner.hpp"

namespace heddle::testing {

BOOST_AUTO_TEST_SUITE(guide)

namespace {

RunnerOptions guide_options() {
  return {.plugin_dirs = {HEDDLE_SAMPLE_PLUGINS_DIR "/guide"},
          .device = "cpu:0",
          .default_plugin_dir = HEDDLE_PLUGINS_DIR};
}

}  // namespace

BOOST_AUTO_TEST_CASE(its_first_node_repeats_a_text_within_its_range) {
  NodeRunner runner(guide_options());
  const NodeOutputs made = runner.run("guide.repeat");
  BOOST_TEST(made.text("out") == "knit knit ");
  BOOST_TEST(made.progress() == (std::vector<double>{0.5, 1}), boost::test_tools::per_element());
  BOOST_TEST(runner.run("guide.repeat", {{"text", "a"}, {"times", 3}}).text("out") == "aaa");
  BOOST_TEST(runner.refusal("guide.repeat", {{"times", 101}}) != "");
}

BOOST_AUTO_TEST_CASE(its_tensor_node_makes_a_picture_darker) {
  NodeRunner runner(guide_options());
  const Array picture{{1, 1, 2, 3}, {0, 0.5f, 1, 0.25f, 0.75f, 1}};
  const Array dim = runner.run("guide.dim", {{"image", picture}, {"factor", 0.5}}).array("IMAGE");
  BOOST_TEST(dim.shape == picture.shape, boost::test_tools::per_element());
  BOOST_TEST(dim.values == (std::vector<float>{0, 0.25f, 0.5f, 0.125f, 0.375f, 0.5f}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(its_plugins_are_all_loaded) {
  NodeRunner runner(guide_options());
  for (const char* id :
       {"org.example.guide_node", "org.example.guide_tensor_node", "org.example.guide_sampler"})
    BOOST_TEST(std::ranges::any_of(
                   runner.engine().plugins(),
                   [&](const auto& plugin) { return plugin.id == id && plugin.refused.empty(); }),
               id);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::testing
