// The guide's blocks of code (sdk/guide), compiled as they stand there and run.
#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>

#include "heddle/testing/node_runner.hpp"
#include "tests/support/temporary_folder.h"

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

BOOST_AUTO_TEST_CASE(its_node_in_host_memory_turns_pictures_around) {
  NodeRunner runner(guide_options());
  const Array pictures{{2, 1, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
  const Array turned = runner.run("guide.mirror", {{"image", pictures}}).array("IMAGE");
  BOOST_TEST(turned.shape == pictures.shape, boost::test_tools::per_element());
  BOOST_TEST(turned.values == (std::vector<float>{5, 6, 3, 4, 1, 2, 11, 12, 9, 10, 7, 8}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(its_resumed_node_goes_on_where_it_was_stopped) {
  NodeRunner runner(guide_options());
  BOOST_TEST(runner.run("guide.sum_up", {{"last", 100}}).integer("sum") == 5050);

  const test::TemporaryFolder folder;
  const auto shares = [](std::vector<double>& to) {
    return [&to](const Event& e) {
      if (e.kind == Event::Kind::node_progress) to.push_back(e.fraction);
    };
  };
  std::vector<double> first, second;
  std::atomic<int> kept{0};
  StartOptions options{.fetch = {"sum.sum"}, .checkpoint = folder / "run.checkpoint", .anew = true};
  options.observer = [&, tell = shares(first)](const Event& e) {
    tell(e);
    // As a run that was killed there would leave it.
    if (e.kind == Event::Kind::checkpoint_written && ++kept == 4)
      std::filesystem::copy_file(options.checkpoint, folder / "kept.checkpoint");
  };
  Engine& engine = runner.engine();
  const Workflow flow = engine.parse(
      R"({"sum": {"class_type": "guide.sum_up", "inputs": {"last": 100}},
          "show": {"class_type": "PreviewAny", "inputs": {"source": ["sum", 0]}}})");
  BOOST_TEST(engine.start(flow, options).wait().text("sum.sum") == "5050");
  BOOST_TEST_REQUIRE(kept >= 4);
  const RunCheckpoint stopped = RunCheckpoint::load(folder / "kept.checkpoint");
  Engine other(EngineOptions{.plugin_dirs = {HEDDLE_SAMPLE_PLUGINS_DIR "/guide"},
                             .default_plugin_dir = HEDDLE_PLUGINS_DIR,
                             .devices = {"cpu:0"}});
  const Results rest =
      other.resume(stopped, {.observer = shares(second), .fetch = {"sum.sum"}}).wait();
  BOOST_TEST(rest.text("sum.sum") == "5050");
  BOOST_TEST(first.size() == 100);
  BOOST_TEST((second.size() > 90 && second.size() < 100));  // what had been added stayed added
  BOOST_TEST(second.back() == 1);
}

BOOST_AUTO_TEST_CASE(its_plugins_are_all_loaded) {
  NodeRunner runner(guide_options());
  for (const char* id :
       {"org.example.guide_node", "org.example.guide_tensor_node", "org.example.guide_resumed_node",
        "org.example.guide_sampler", "org.example.guide_family"})
    BOOST_TEST(std::ranges::any_of(
                   runner.engine().plugins(),
                   [&](const auto& plugin) { return plugin.id == id && plugin.refused.empty(); }),
               id);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::testing
