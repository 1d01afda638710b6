// Plugins of ABI 1.0 (abi_1_0/), as they were compiled then and as compiled now against the headers
// of then: what they gave to the engine of 1.0 they give to this one.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "heddle/abi/base.h"
#include "heddle/testing/node_runner.hpp"

namespace heddle::testing {

BOOST_AUTO_TEST_SUITE(kept)

namespace {

// Each holds the plugins of the others under the same ids, so one at a time.
const char* const kKept[] = {
    HEDDLE_SAMPLE_PLUGINS_DIR "/abi_1_0",
#if defined(__x86_64__)
    HEDDLE_TESTS_DIR "/sdk/abi_1_0/x86_64",
#endif
#if defined(HEDDLE_KEPT_BY_CLANG)
    HEDDLE_KEPT_BY_CLANG,
#endif
};

RunnerOptions kept_options(const char* folder) {
  return {.plugin_dirs = {folder}, .device = "cpu:0", .default_plugin_dir = HEDDLE_PLUGINS_DIR};
}

bool says(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_DATA_TEST_CASE(a_node_of_1_0_reads_widgets_and_reports, kKept, folder) {
  NodeRunner runner(kept_options(folder));
  const NodeOutputs plain = runner.run("kept.tell");
  BOOST_TEST(plain.integer("number") == 8);
  BOOST_TEST(plain.warnings().empty());
  BOOST_TEST(plain.progress() == std::vector<double>{0.5}, boost::test_tools::per_element());
  BOOST_TEST(says(plain.shown(), "shown by 1.0"), plain.shown());
  const NodeOutputs given =
      runner.run("kept.tell", {{"text", "abc"}, {"times", 9}, {"warns", true}});
  BOOST_TEST(given.integer("number") == 27);
  BOOST_TEST_REQUIRE(given.warnings().size() == 1u);
  BOOST_TEST(given.warnings()[0] == "a warning of 1.0");
}

BOOST_DATA_TEST_CASE(a_service_that_nobody_has_is_done_without, kKept, folder) {
  NodeRunner runner(kept_options(folder));
  BOOST_TEST(runner.run("kept.tell").text("telepathy") == "false");
}

BOOST_DATA_TEST_CASE(ranges_and_validators_of_1_0_refuse, kKept, folder) {
  NodeRunner runner(kept_options(folder));
  BOOST_TEST(runner.refusal("kept.tell", {{"times", 9}}) == "");
  BOOST_TEST(says(runner.refusal("kept.tell", {{"times", 10}}), "times"));
  BOOST_TEST(says(runner.refusal("kept.tell", {{"text", "never"}}), "this text never runs"));
  BOOST_CHECK_EXCEPTION(
      runner.run("kept.tell", {{"text", "fail"}}), EngineError, [](const EngineError& error) {
        return error.code() == HEDDLE_UNSUPPORTED && says(error.what(), "the text says so");
      });
}

BOOST_DATA_TEST_CASE(lists_of_1_0_go_element_by_element_and_come_together, kKept, folder) {
  NodeRunner runner(kept_options(folder));
  const NodeOutputs made = runner.run_workflow(
      R"({"letters": {"class_type": "kept.letters", "inputs": {"text": "abc"}},
          "tell": {"class_type": "kept.tell", "inputs": {"text": ["letters", 0], "times": 3}},
          "join": {"class_type": "kept.join", "inputs": {"texts": ["letters", 0]}},
          "last": {"class_type": "kept.tell", "inputs": {"text": ["join", 0]}}})",
      {"join.out", "tell.number"});
  BOOST_TEST(made.text("join.out") == "a-b-c-");
  BOOST_TEST(made.text("tell.number") == "[3,3,3]");
}

BOOST_DATA_TEST_CASE(a_tensor_of_1_0_is_read_and_made_in_host_memory, kKept, folder) {
  NodeRunner runner(kept_options(folder));
  const Array half = runner.run("kept.halve", {{"x", Array{{2, 2}, {1, 2, 3, -4}}}}).array("out");
  BOOST_TEST(half.shape == (std::vector<std::int64_t>{2, 2}), boost::test_tools::per_element());
  BOOST_TEST(half.values == (std::vector<float>{0.5f, 1, 1.5f, -2}),
             boost::test_tools::per_element());
}

BOOST_DATA_TEST_CASE(a_node_of_1_0_asks_for_the_inputs_that_it_needs, kKept, folder) {
  NodeRunner runner(kept_options(folder));
  const NodeOutputs made = runner.run_workflow(
      R"({"good": {"class_type": "kept.join", "inputs": {"texts": ["letters", 0]}},
          "letters": {"class_type": "kept.letters", "inputs": {"text": "xy"}},
          "choose": {"class_type": "kept.choose",
                     "inputs": {"takes_first": false, "first": "a", "second": ["good", 0],
                                "more": 1, "most": 2}},
          "tell": {"class_type": "kept.tell", "inputs": {"text": ["choose", 0]}}})",
      {"choose.out", "choose.told", "tell.number"});
  BOOST_TEST(made.text("choose.out") == "x-y-");
  BOOST_TEST(made.text("choose.told") == "102");
  BOOST_TEST(made.text("tell.number") == "8");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::testing
