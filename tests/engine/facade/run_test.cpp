// Whole runs through the facade, with small nodes: what the executor promises.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <set>
#include <thread>

#include "tests/support/comes_about.h"
#include "tests/support/engine_fixture.h"

using namespace heddle;
using test::engine_refusal;
using test::workflow;

namespace {

struct RunFixture {
  Engine engine{test::engine_options()};

  std::int64_t number(const std::string& flow, const std::string& output) {
    return std::stoll(engine.start(engine.parse(flow), {{}, {output}}).wait().text(output));
  }
};

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(run, RunFixture)

BOOST_AUTO_TEST_CASE(two_small_nodes_of_two_plugins_run) {
  const std::string flow =
      workflow({{"1", R"({"class_type": "demo.hello", "inputs": {"name": "heddle", "times": 2}})"},
                {"2", R"({"class_type": "demo.count_bytes", "inputs": {"text": ["1", 0]}})"},
                {"3", R"({"class_type": "test.keep", "inputs": {"value": ["2", 0]}})"}});
  BOOST_TEST(number(flow, "3.out") == 30);
}

// Its values lie in the engine's memory.
BOOST_AUTO_TEST_CASE(results_that_outlive_their_engine_say_that_it_has_gone) {
  Results results;
  DLManagedTensor* kept = nullptr;
  {
    Engine other{test::engine_options()};
    const Workflow flow = other.parse(
        workflow({{"1", R"({"class_type": "test.ramp", "inputs": {"count": 4, "start": 1}})"},
                  {"2", R"({"class_type": "test.keep", "inputs": {"value": ["1", 0]}})"}}));
    results = other.start(flow, {{}, {"1.out"}}).wait();
    kept = results.tensor("1.out");
    BOOST_TEST(results.floats("1.out")[0] == 1.0f);
  }
  for (const auto& read : std::vector<std::function<void()>>{
           [&] { results.floats("1.out"); }, [&] { results.shape("1.out"); },
           [&] { results.text("1.out"); }, [&] { results.image("1.out"); },
           [&] { results.tensor("1.out"); }})
    BOOST_CHECK_EXCEPTION(read(), EngineError, [](const EngineError& error) {
      return error.code() == HEDDLE_UNSUPPORTED &&
             mentions(error.what(), "the value '1.out' went with the Engine of its run");
    });
  // What says where files are, and what was copied, stays.
  BOOST_TEST(results.files().empty());
  BOOST_TEST(results.stages().size() == 2u);
  BOOST_TEST(results.ui() == "{}");
  BOOST_TEST(static_cast<const float*>(kept->dl_tensor.data)[1] == 2.0f);
  kept->deleter(kept);
}

BOOST_AUTO_TEST_CASE(a_lazy_input_that_is_not_wanted_is_never_computed) {
  const std::string flow = workflow(
      {{"bad", R"({"class_type": "test.fail", "inputs": {}})"},
       {"good", R"({"class_type": "test.add", "inputs": {"a": 20, "b": 3}})"},
       {"pick",
        R"({"class_type": "test.choose", "inputs": {"first": false, "a": ["bad", 0], "b": ["good", 0]}})"},
       {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["pick", 0]}})"}});
  BOOST_TEST(number(flow, "keep.out") == 23);
}

BOOST_AUTO_TEST_CASE(outputs_that_can_run_do_so_where_that_is_asked_for) {
  const Workflow flow = engine.parse(
      workflow({{"1", R"({"class_type": "test.add", "inputs": {"a": 20, "b": 3}})"},
                {"good", R"({"class_type": "test.keep", "inputs": {"value": ["1", 0]}})"},
                {"bad", R"({"class_type": "test.keep", "inputs": {"value": ["1", 7]}})"}}));
  BOOST_TEST(mentions(engine_refusal([&] { engine.start(flow); }), "node 'bad'"));
  StartOptions partly{{}, {"good.out"}};
  partly.partly = true;
  BOOST_TEST(engine.start(flow, std::move(partly)).wait().text("good.out") == "23");
  const Engine::Problems problems = engine.check(flow);
  BOOST_TEST(problems.errors.size() == 1u);
  BOOST_TEST(problems.outputs == std::vector<std::string>{"good"});
  BOOST_TEST(mentions(problems.answer, R"({"node_errors":{"bad":{"errors":[{"type":)"));
}

BOOST_AUTO_TEST_CASE(a_deferred_node_finishes_from_another_thread) {
  const std::string flow =
      workflow({{"1", R"({"class_type": "test.later", "inputs": {"value": 21}})"},
                {"2", R"({"class_type": "test.keep", "inputs": {"value": ["1", 0]}})"}});
  BOOST_TEST(number(flow, "2.out") == 42);
}

BOOST_AUTO_TEST_CASE(a_deferred_node_that_fails_is_named_whatever_it_does) {
  for (const auto& [how, text] : {std::pair("fail", "it was asked to fail later"),
                                  {"throw", "it was asked to throw later"},
                                  {"drop", "the node has let go of a call unfinished"},
                                  {"now", "it was asked to throw at once"}}) {
    const std::string later =
        R"({"class_type": "test.later", "inputs": {"how": ")" + std::string(how) + R"("}})";
    const std::string flow =
        workflow({{"1", later.c_str()},
                  {"2", R"({"class_type": "test.keep", "inputs": {"value": ["1", 0]}})"}});
    BOOST_TEST(engine_refusal([&] { engine.start(engine.parse(flow)).wait(); }) ==
               "node '1' (test.later): " + std::string(text));
  }
}

BOOST_AUTO_TEST_CASE(a_node_knows_its_device_and_what_it_has_not_declared) {
  const std::string flow =
      workflow({{"1", R"({"class_type": "test.where", "inputs": {"b": 2, "a": 1}})"},
                {"2", R"({"class_type": "test.keep", "inputs": {"value": ["1", 0]}})"}});
  const Results results =
      engine.start(engine.parse(flow), {{}, {"1.device", "1.has_stream", "1.extra"}}).wait();
  BOOST_TEST(results.text("1.device") == test::test_device());
  BOOST_TEST(results.text("1.has_stream") ==
             (test::test_device_kind() == "cpu" ? "false" : "true"));
  BOOST_TEST(results.text("1.extra") == "b=2 a=1 ");
}

BOOST_AUTO_TEST_CASE(a_failing_node_ends_the_run_and_is_named) {
  for (const auto& [how, text] : {std::pair("error", "it was asked to fail"),
                                  {"exception", "a foreign exception"},
                                  {"number", "unknown exception"},
                                  {"nothing", "did not set its output"}}) {
    const std::string flow = workflow(
        {{"7", (R"({"class_type": "test.fail", "inputs": {"how": ")" + std::string(how) + R"("}})")
                   .c_str()},
         {"8", R"({"class_type": "test.keep", "inputs": {"value": ["7", 0]}})"}});
    const std::string reason = engine_refusal([&] { engine.start(engine.parse(flow)).wait(); });
    BOOST_TEST(mentions(reason, text), reason);
    BOOST_TEST(mentions(reason, "'7' (test.fail)"), reason);
  }
}

BOOST_AUTO_TEST_CASE(a_cancelled_run_stops_and_the_next_one_works) {
  const std::string flow =
      workflow({{"1", R"({"class_type": "test.wait", "inputs": {}})"},
                {"2", R"({"class_type": "test.keep", "inputs": {"value": ["1", 0]}})"}});
  std::atomic<bool> waiting{false};
  Run run = engine.start(
      engine.parse(flow),
      {[&](const Event& e) { waiting = waiting || e.kind == Event::Kind::node_progress; }, {}});
  BOOST_TEST_REQUIRE(test::comes_about([&] { return waiting.load(); }), "the node does not begin");
  run.cancel();
  BOOST_CHECK_EXCEPTION(run.wait(), EngineError,
                        [](const EngineError& e) { return e.code() == 5; });
  BOOST_TEST(
      number(workflow({{"1", R"({"class_type": "test.add", "inputs": {"a": 1}})"},
                       {"2", R"({"class_type": "test.keep", "inputs": {"value": ["1", 0]}})"}}),
             "2.out") == 2);
}

BOOST_AUTO_TEST_CASE(a_paused_run_ends_when_it_is_cancelled) {
  const std::string flow =
      workflow({{"1", R"({"class_type": "test.wait", "inputs": {}})"},
                {"2", R"({"class_type": "test.keep", "inputs": {"value": ["1", 0]}})"}});
  std::atomic<bool> waiting{false};
  Run stopped = engine.start(
      engine.parse(flow),
      {[&](const Event& e) { waiting = waiting || e.kind == Event::Kind::node_progress; }, {}});
  BOOST_TEST_REQUIRE(test::comes_about([&] { return waiting.load(); }), "the node does not begin");
  stopped.pause();
  stopped.cancel();
  BOOST_CHECK_EXCEPTION(stopped.wait(), EngineError,
                        [](const EngineError& e) { return e.code() == 5; });
}

// Its first node is held until the run is paused. Then another run of as many nodes comes and goes:
// whoever does not wait is through by then.
BOOST_AUTO_TEST_CASE(a_paused_run_begins_no_node_and_goes_on_when_it_is_resumed) {
  const auto chain = [&](int first) {
    std::string flow =
        R"({"0": {"class_type": "test.add", "inputs": {"a": )" + std::to_string(first) + "}}";
    for (int i = 1; i < 2000; ++i)
      flow += ", \"" + std::to_string(i) + R"(": {"class_type": "test.add", "inputs": {"a": [")" +
              std::to_string(i - 1) + R"(", 0]}})";
    return engine.parse(
        flow + R"(, "end": {"class_type": "test.keep", "inputs": {"value": ["1999", 0]}}})");
  };
  std::atomic<bool> begun{false}, paused{false};
  std::atomic<int> nodes{0};
  Run run = engine.start(chain(0), {[&](const Event& e) {
                                      if (e.kind != Event::Kind::node_started) return;
                                      ++nodes;
                                      begun = true;
                                      test::comes_about([&] { return paused.load(); });
                                    },
                                    {"end.out"}});
  BOOST_TEST_REQUIRE(test::comes_about([&] { return begun.load(); }), "no node begins");
  run.pause();
  paused = true;
  BOOST_TEST(engine.start(chain(1), {{}, {"end.out"}}).wait().text("end.out") == "2001");
  BOOST_TEST(nodes == 1);
  run.resume();
  BOOST_TEST(run.wait().text("end.out") == "2000");
  BOOST_TEST(nodes == 2001);
}

BOOST_AUTO_TEST_CASE(what_did_not_change_is_taken_from_the_cache) {
  const auto stages = [&](const std::string& b) {
    const std::string flow = workflow(
        {{"1", R"({"class_type": "test.add", "inputs": {"a": 1, "b": 1}})"},
         {"2",
          (R"({"class_type": "test.add", "inputs": {"a": ["1", 0], "b": )" + b + "}}").c_str()},
         {"3", R"({"class_type": "test.keep", "inputs": {"value": ["2", 0]}})"}});
    std::multiset<std::string> done;
    for (const Stage& s : engine.start(engine.parse(flow)).wait().stages())
      done.insert(s.node + (s.cached ? " cached" : " run"));
    return done;
  };
  BOOST_TEST((stages("5") == std::multiset<std::string>{"1 run", "2 run", "3 run"}));
  BOOST_TEST((stages("5") == std::multiset<std::string>{"3 cached"}));
  BOOST_TEST((stages("6") == std::multiset<std::string>{"1 cached", "2 run", "3 run"}));
}

BOOST_AUTO_TEST_CASE(a_chain_of_fifty_thousand_nodes_runs_without_recursion) {
  std::string flow = "{";
  for (int i = 0; i < 50000; ++i)
    flow += "\"" + std::to_string(i) + R"(": {"class_type": "test.add", "inputs": {"a": )" +
            (i == 0 ? std::string("0") : "[\"" + std::to_string(i - 1) + "\", 0]") + "}},";
  flow += R"("end": {"class_type": "test.keep", "inputs": {"value": ["49999", 0]}}})";
  BOOST_TEST(number(flow, "end.out") == 50000);
}

BOOST_AUTO_TEST_CASE(many_runs_at_once_do_not_disturb_each_other) {
  std::vector<Run> runs;
  std::vector<std::string> flows;
  for (int i = 0; i < 24; ++i)
    flows.push_back(
        workflow({{"1", (R"({"class_type": "test.ramp", "inputs": {"start": )" + std::to_string(i) +
                         R"(, "count": 64}})")
                            .c_str()},
                  {"2", R"({"class_type": "test.keep", "inputs": {"value": ["1", 0]}})"}}));
  for (const std::string& flow : flows)
    runs.push_back(engine.start(engine.parse(flow), {{}, {"2.out"}}));
  for (int i = 0; i < 24; ++i)
    BOOST_TEST(runs[std::size_t(i)].wait().floats("2.out").back() == float(i + 63));
}

BOOST_AUTO_TEST_SUITE_END()
