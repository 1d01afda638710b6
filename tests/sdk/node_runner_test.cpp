// Nodes by themselves, as their authors test them (heddle/testing/node_runner.hpp).
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <stdexcept>

#include "heddle/abi/base.h"
#include "heddle/testing/node_runner.hpp"

namespace heddle::testing {

namespace {

RunnerOptions runner_options(const char* device) {
  return {.plugin_dirs = {HEDDLE_SAMPLE_PLUGINS_DIR, HEDDLE_SAMPLE_PLUGINS_DIR "/careless",
                          HEDDLE_FAKE_DEVICE_DIR},
          .device = device,
          .default_plugin_dir = HEDDLE_PLUGINS_DIR};
}

bool mentions(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(node_runner)

BOOST_AUTO_TEST_CASE(inputs_go_in_and_outputs_come_out) {
  NodeRunner runner(runner_options("cpu:0"));
  const Array samples{{1, 2, 1, 3}, {1, 2, 3, 4, 5, 6}};
  const NodeOutputs made =
      runner.run("careless.tell", {{"text", "ä \"quoted\" \\ \t"},
                                   {"number", 0.1},
                                   {"whole", std::int64_t{1} << 40},
                                   {"flag", false},
                                   {"latent", NodeValue::Record{{"samples", samples}}}});
  BOOST_TEST(made.text("text") == "ä \"quoted\" \\ \t");
  BOOST_TEST(made.number("number") == 0.1);
  BOOST_TEST(made.integer("whole") == std::int64_t{1} << 40);
  BOOST_TEST(made.text("flag") == "false");
  const Array back = made.array("latent", "samples");
  BOOST_TEST(back.shape == samples.shape, boost::test_tools::per_element());
  BOOST_TEST(back.values == samples.values, boost::test_tools::per_element());
  BOOST_TEST(made.progress() == std::vector<double>{0.25}, boost::test_tools::per_element());
  BOOST_TEST_REQUIRE(made.warnings().size() == 1u);
  BOOST_TEST(made.warnings()[0] == "mind the step");
}

BOOST_AUTO_TEST_CASE(what_is_left_out_has_its_default) {
  NodeRunner runner(runner_options("cpu:0"));
  const NodeOutputs made = runner.run("careless.tell");
  BOOST_TEST(made.text("text") == "a \"b\"\n");
  BOOST_TEST(made.number("number") == 0.5);
  BOOST_TEST(made.integer("whole") == 3);
  BOOST_TEST(made.text("flag") == "true");
}

BOOST_AUTO_TEST_CASE(a_node_that_throws_gives_its_code_and_its_words) {
  NodeRunner runner(runner_options("cpu:0"));
  BOOST_CHECK_EXCEPTION(
      runner.run("careless.tell", {{"whole", -1}}), EngineError, [](const EngineError& error) {
        return error.code() == HEDDLE_UNSUPPORTED && mentions(error.what(), "no number below 0");
      });
  // The next run is none the worse for it.
  BOOST_TEST(runner.run("careless.tell").integer("whole") == 3);
}

BOOST_AUTO_TEST_CASE(what_the_engine_would_not_run_is_refused_with_its_reason) {
  NodeRunner runner(runner_options("cpu:0"));
  BOOST_TEST(runner.refusal("demo.hello", {{"times", 2}}) == "");
  BOOST_TEST(mentions(runner.refusal("demo.hello", {{"times", 101}}), "times"));
  BOOST_TEST(mentions(runner.refusal("demo.hello", {{"times", "two"}}), "times"));
  BOOST_TEST(mentions(runner.refusal("demo.nothing"), "demo.nothing"));
  BOOST_TEST(mentions(runner.refusal("careless.double"), "x"));
  BOOST_CHECK_THROW(runner.run("careless.double", {{"x", Array{{2}, {1}}}}), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(runs_are_made_anew_in_folders_that_go_with_the_runner) {
  std::filesystem::path folder;
  {
    NodeRunner runner(runner_options("cpu:0"));
    folder = runner.folder();
    const char* flow = R"({"ramp": {"class_type": "test.ramp", "inputs": {}},
                           "save": {"class_type": "test.save",
                                    "inputs": {"value": ["ramp", 0]}}})";
    for (int round = 1; round <= 2; ++round) {
      const NodeOutputs made = runner.run_workflow(flow, {"ramp.out"});
      BOOST_TEST(made.array("ramp.out").values.size() == 4u);
      BOOST_TEST_REQUIRE(made.files().size() == 1u);
      BOOST_TEST(made.files()[0].filename() == std::to_string(round));
      BOOST_TEST(std::filesystem::exists(made.files()[0]));
    }
  }
  BOOST_TEST(!std::filesystem::exists(folder));
}

BOOST_AUTO_TEST_CASE(each_fault_fails_its_run_and_no_other) {
  NodeRunner runner(runner_options("fake:0"));
  for (const auto& [fault, words] :
       {std::pair(Fault::allocation, "memory"), std::pair(Fault::copy, "a test asked for it")}) {
    const FaultReport report = runner.inject(fault, "test.ramp");
    BOOST_TEST(report.passed());
    BOOST_TEST(report.struck > 0u);
    BOOST_TEST(report.struck < 64u);
    if (fault == Fault::copy) BOOST_TEST_REQUIRE(!report.messages.empty());
    for (const std::string& message : report.messages)
      BOOST_TEST(mentions(message, words), message);
    for (const std::string& wrong : report.wrong) BOOST_TEST_MESSAGE(wrong);
  }
  const Array x{{3}, {1, 2, 3}};
  const FaultReport launches = runner.inject(Fault::launch, "careless.double", {{"x", x}});
  BOOST_TEST(launches.passed());
  BOOST_TEST(launches.struck == 1u);
  BOOST_TEST(launches.survived == 0u);
}

BOOST_AUTO_TEST_CASE(a_node_that_takes_a_fault_for_nothing_is_found) {
  NodeRunner runner(runner_options("fake:0"));
  // As large as what the engine asks a device for at least, so that every tensor is an allocation.
  const Array x{{1 << 20}, std::vector<float>(1 << 20, 1.0f)};
  const FaultReport report = runner.inject(Fault::allocation, "careless.double", {{"x", x}});
  BOOST_TEST(report.struck > 1u);
  BOOST_TEST(!report.passed());
  BOOST_TEST(!report.wrong.empty());
  for (const std::string& wrong : report.wrong)
    BOOST_TEST(mentions(wrong, "it succeeds with other results"), wrong);
  BOOST_CHECK_THROW(
      NodeRunner(runner_options("cpu:0")).inject(Fault::launch, "careless.double", {{"x", x}}),
      std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::testing
