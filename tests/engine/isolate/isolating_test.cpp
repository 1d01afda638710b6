#include "engine/isolate/isolating.h"

#include <boost/test/data/test_case.hpp>
#include <csignal>
#include <mutex>
#include <thread>

#include "engine/base/text.h"
#include "heddle/engine.h"
#include "tests/engine/isolate/isolated_fixture.h"
#include "tests/support/lent_tensor.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using engine::cat;
using test::engine_refusal;
using test::isolated_options;
using test::run_text;
using test::workflow;

BOOST_AUTO_TEST_SUITE(isolating)

namespace {

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// What a workflow's outputs hold, with the plugin in this process and in a worker.
template <class Read>
void check_same_isolated(const std::string& flow, const std::string& output, Read&& read) {
  StartOptions start;
  start.fetch = {output};
  Engine here(isolated_options({})), there(isolated_options());
  const auto expected = read(here.start(here.parse(flow), start).wait());
  const auto got = read(there.start(there.parse(flow), start).wait());
  BOOST_TEST((expected == got));
}

std::string echoed(const std::string& node, const std::string& value) {
  return workflow({{"raw", value.c_str()},
                   {"echo", cat(R"({"class_type": "test.isolated.)", node,
                                R"(", "inputs": {"in": ["raw", 0]}})")
                                .c_str()},
                   {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["echo", 0]}})"}});
}

}  // namespace

BOOST_DATA_TEST_CASE(values_come_back_equal,
                     boost::unit_test::data::make({"i:-5", "i:9223372036854775807",
                                                   "u:18446744073709551615", "f:nan", "f:-0.0",
                                                   "f:1e-310", "s:", "s:text \\u00e4"}) *
                         boost::unit_test::data::make({"echo", "pass"}),
                     text, node) {
  const std::string raw = cat(R"({"class_type": "test.raw", "inputs": {"text": ")", text, R"("}})");
  check_same_isolated(echoed(node, raw), "keep.out",
                      [](const Results& r) { return r.text("keep.out"); });
}

// Without elements, in the message, and in shared memory; row-major and not; made here and there.
BOOST_DATA_TEST_CASE(tensors_come_back_equal,
                     boost::unit_test::data::make({0, 3, 1'023, 1'024, 20'000}) *
                         boost::unit_test::data::make({"true", "false"}) *
                         boost::unit_test::data::make({"echo", "pass", "shift"}),
                     rows, turned, node) {
  const std::string count = cat(R"({"class_type": "test.isolated.count", "inputs": {"rows": )",
                                rows, R"(, "turned": )", turned, "}}");
  check_same_isolated(echoed(node, count), "keep.out", [](const Results& r) {
    return std::pair(r.floats("keep.out"), r.shape("keep.out"));
  });
}

BOOST_AUTO_TEST_CASE(what_a_node_tells_is_the_same) {
  // Events, lines of the log and what the run shows, without the folder's name.
  const auto told = [](std::vector<std::string> isolated) {
    const test::TemporaryFolder folder;
    std::mutex mutex;
    std::vector<std::string> all;
    EngineOptions options = isolated_options(std::move(isolated));
    options.output_dir = folder.path();
    options.log = [&](int level, std::string_view text) {
      const std::lock_guard lock(mutex);
      if (text == "a line of the log") all.push_back(cat("log ", level, " ", text));
    };
    Engine engine(options);
    StartOptions start;
    start.previews = PreviewMethod::linear;
    start.observer = [&](const heddle::Event& event) {
      const std::lock_guard lock(mutex);
      if (event.kind == heddle::Event::Kind::node_done) return;
      std::string text(event.text);
      if (event.kind == heddle::Event::Kind::file_written)
        text = std::filesystem::path(text).lexically_relative(folder.path()).string();
      if (event.preview != nullptr)
        text += cat(event.preview->width, " ", event.preview->height, " ", event.preview->step, " ",
                    event.preview->step_count, " ", int(event.preview->pixels[5]));
      all.push_back(cat(int(event.kind), " ", event.node, " ", event.fraction, " ", text));
    };
    const std::string flow =
        workflow({{"tell", R"({"class_type": "test.isolated.tell", "inputs": {}})"}});
    all.push_back(engine.start(engine.parse(flow), std::move(start)).wait().ui());
    return all;
  };
  const std::vector<std::string> expected = told({});
  BOOST_TEST(expected.size() >= 7u);
  BOOST_TEST(told({"sample_isolated"}) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_plugin_is_named_by_its_file_or_id) {
  for (const char* name :
       {"sample_isolated", "sample_isolated.so",
        HEDDLE_SAMPLE_PLUGINS_DIR "/isolated/sample_isolated.so", "org.heddle.tests.isolated"}) {
    Engine engine(isolated_options({name}));
    const std::string id = run_text(
        engine,
        workflow(
            {{"process", R"({"class_type": "test.isolated.process", "inputs": {}})"},
             {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["process", 0]}})"}}));
    BOOST_TEST(id != std::to_string(::getpid()), name);
  }
  const std::string refused =
      engine_refusal([] { Engine engine(isolated_options({"sample_isolatd"})); });
  BOOST_TEST_CONTEXT(refused)
  BOOST_TEST((holds(refused, "'sample_isolatd'") && holds(refused, "'sample_isolated'")));
}

BOOST_AUTO_TEST_CASE(a_plugin_of_more_than_nodes_is_refused_by_name) {
  EngineOptions options = isolated_options({"fake", "samplers"});
  options.plugin_dirs.push_back(HEDDLE_FAKE_DEVICE_DIR "/fake.so");
  Engine engine(options);
  std::string refused;
  for (const PluginInfo& plugin : engine.plugins()) refused += plugin.refused;
  BOOST_TEST_CONTEXT(refused)
  BOOST_TEST((holds(refused, "fake.so") && holds(refused, "brings 1 devices") &&
              holds(refused, "samplers.so") && holds(refused, "of 'heddle.field.") &&
              holds(refused, "Leave it out of --isolate")));
}

BOOST_AUTO_TEST_CASE(a_worker_is_used_again_and_a_dead_one_is_not) {
  Engine engine(isolated_options());
  const auto worker = [&] {
    return run_text(
        engine,
        workflow(
            {{"process", R"({"class_type": "test.isolated.process", "inputs": {}})"},
             {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["process", 0]}})"}}));
  };
  const std::string first = worker();
  BOOST_TEST(worker() == first);
  ::kill(pid_t(std::stol(first)), SIGKILL);  // between two calls
  const std::string error = engine_refusal([&] { worker(); });
  if (!error.empty()) BOOST_TEST((holds(error, "SIGKILL")), error);
  BOOST_TEST(worker() != first);
}

// Objects stay where they were made; the node that opens them runs there, and the last one that
// goes is dropped there.
BOOST_AUTO_TEST_CASE(objects_stay_in_their_worker) {
  Engine engine(isolated_options());
  const std::string flow = workflow(
      {{"a", R"({"class_type": "test.isolated.make_box", "inputs": {"value": 40}})"},
       {"b", R"({"class_type": "test.isolated.make_box", "inputs": {"value": 2}})"},
       {"echo", R"({"class_type": "test.isolated.echo", "inputs": {"in": ["b", 0]}})"},
       {"open",
        R"({"class_type": "test.isolated.open_box", "inputs": {"box": ["a", 0], "other": ["echo", 0]}})"},
       {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["open", 0]}})"}});
  for (int i = 0; i < 20; ++i) BOOST_TEST(run_text(engine, flow) == "42");
  // Which worker was it? One run at a time has one.
  const std::string left =
      workflow({{"process", R"({"class_type": "test.isolated.process", "inputs": {}})"},
                {"id", R"({"class_type": "test.keep", "inputs": {"value": ["process", 0]}})"},
                {"made", R"({"class_type": "test.keep", "inputs": {"value": ["process", 2]}})"},
                {"there", R"({"class_type": "test.keep", "inputs": {"value": ["process", 1]}})"}});
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (std::string there; there != "0";) {  // the worker is told meanwhile
    StartOptions start;
    start.fetch = {"id.out", "made.out", "there.out"};
    const Results results = engine.start(engine.parse(left), std::move(start)).wait();
    BOOST_TEST_REQUIRE(results.text("made.out") == "40");  // two in each run, all in one worker
    BOOST_TEST_REQUIRE(results.text("id.out") != std::to_string(::getpid()));
    there = results.text("there.out");
    BOOST_TEST_REQUIRE((std::chrono::steady_clock::now() < until), there << " are left");
  }
}

BOOST_AUTO_TEST_CASE(programs_in_c_isolate_plugins) {
  const char* const folders[] = {HEDDLE_SAMPLE_PLUGINS_DIR, HEDDLE_SAMPLE_PLUGINS_DIR "/isolated"};
  const char* const isolated[] = {"sample_isolated"};
  const char* const devices[] = {"cpu:0"};
  heddle_engine_options options{};
  options.size = sizeof options;
  options.default_plugin_dir = HEDDLE_PLUGINS_DIR;
  options.plugin_dirs = folders;
  options.plugin_dir_count = 2;
  options.devices = devices;
  options.device_count = 1;
  options.isolate = isolated;
  options.isolate_count = 1;
  options.isolate_memory = "1GiB and more";
  heddle_engine* engine = nullptr;
  char* error = nullptr;
  BOOST_TEST(heddle_engine_make(&options, &engine, &error) == HEDDLE_INVALID_ARGUMENT);
  heddle_text_free(error);
  options.isolate_memory = nullptr;
  BOOST_TEST_REQUIRE(heddle_engine_make(&options, &engine, nullptr) == 0);
  heddle_workflow* flow = nullptr;
  heddle_run* run = nullptr;
  const std::string text = test::ending_workflow("abort");
  BOOST_TEST(heddle_engine_parse(engine, text.c_str(), nullptr, &flow, nullptr) == 0);
  BOOST_TEST(heddle_engine_start(engine, flow, nullptr, &run, nullptr) == 0);
  BOOST_TEST(heddle_run_wait(run, -1, nullptr, &error) == HEDDLE_INTERNAL);
  BOOST_TEST((error != nullptr && holds(error, "SIGABRT")));
  heddle_text_free(error);
  heddle_run_free(run);
  heddle_workflow_free(flow);
  heddle_engine_free(engine);
}

BOOST_AUTO_TEST_CASE(what_a_node_only_reads_it_cannot_change) {
  test::LentTensor given({5000, 4}, std::vector<float>(20'000));  // outlives the engine
  Engine engine(isolated_options());
  const std::string flow = workflow(
      {{"count", R"({"class_type": "test.isolated.count", "inputs": {"rows": 5000}})"},
       {"shift", R"({"class_type": "test.isolated.shift", "inputs": {"in": ["count", 0]}})"},
       {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["shift", 0]}})"}});
  StartOptions start;
  start.fetch = {"keep.out"};
  const std::vector<float> before =
      engine.start(engine.parse(flow), start).wait().floats("keep.out");
  BOOST_TEST(before.size() == 20'000u);
  const std::string error = engine_refusal([&] {
    StartOptions scribbles;
    scribbles.inputs["scribble.in"] = given.lend();
    engine
        .start(engine.parse(workflow(
                   {{"scribble", R"({"class_type": "test.isolated.scribble", "inputs": {}})"},
                    {"keep",
                     R"({"class_type": "test.keep", "inputs": {"value": ["scribble", 0]}})"}})),
               std::move(scribbles))
        .wait();
  });
  BOOST_TEST_CONTEXT(error) BOOST_TEST((holds(error, "SIGSEGV")));
}

BOOST_AUTO_TEST_CASE(the_sandbox_has_neither_network_nor_programs) {
  const std::string flow =
      workflow({{"reach", R"({"class_type": "test.isolated.reach", "inputs": {}})"},
                {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["reach", 0]}})"}});
  Engine open(isolated_options());
  BOOST_TEST(run_text(open, flow) == "");
  EngineOptions options = isolated_options();
  options.isolation.sandbox = true;
  Engine closed(options);
  BOOST_TEST(run_text(closed, flow) == "network program ");
}

#if !defined(HEDDLE_ADDRESS_SANITIZER) && !defined(HEDDLE_THREAD_SANITIZER)
// Sanitizers map more than any limit has.
BOOST_AUTO_TEST_CASE(memory_has_a_limit) {
  Engine free(isolated_options());
  BOOST_TEST(run_text(free, test::ending_workflow("memory", 7)) ==
             "8");  // 1 GiB is no limit itself
  EngineOptions options = isolated_options();
  options.isolation.memory_bytes = 512 << 20;
  Engine engine(options);
  BOOST_TEST(engine_refusal([&] { run_text(engine, test::ending_workflow("memory")); }) ==
             "node 'end' (test.isolated.end): host memory is exhausted");
  BOOST_TEST(run_text(engine, test::ending_workflow("", 7)) == "8");
  options.isolation.memory_bytes = ~std::uint64_t{0};  // no limit, and not a small one
  Engine endless(options);
  BOOST_TEST(run_text(endless, test::ending_workflow("memory", 7)) == "8");
}
#endif

BOOST_AUTO_TEST_SUITE_END()
