// Runs that write after one another, and the devices that many runs spread over.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <future>
#include <mutex>

#include "heddle/abi/base.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/comes_about.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using test::engine_refusal;
using test::workflow;

namespace {

struct RowsOfRunsFixture {
  test::TemporaryFolder folder;
  Engine engine{options()};

  EngineOptions options() const {
    EngineOptions options = test::engine_options();
    options.output_dir = folder.path();
    return options;
  }
  // Saves 10 + b, or fails.
  Workflow flow(int b, bool fails = false) {
    return engine.parse(workflow(
        {{"add", ("{\"class_type\": \"test.add\", \"inputs\": {\"a\": 10, \"b\": " +
                  std::to_string(b) + "}}")
                     .c_str()},
         {"fail", R"({"class_type": "test.fail", "inputs": {}})"},
         {"save", fails ? R"({"class_type": "test.save", "inputs": {"value": ["fail", 0]}})"
                        : R"({"class_type": "test.save", "inputs": {"value": ["add", 0]}})"}}));
  }
  std::string content(const char* file) const {
    std::ifstream stream(folder / file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
};

// The run stands still at its first node until it is released.
struct Gate {
  std::promise<void> open;
  std::shared_future<void> opened = open.get_future().share();
  Observer observer() {
    return [opened = opened](const Event& e) {
      if (e.kind == Event::Kind::node_started) opened.wait_for(std::chrono::minutes(2));
    };
  }
};

// Ready when the run waits for its turn.
struct Waiting {
  std::promise<std::string> node;
  std::future<std::string> waits = node.get_future();
  Observer observer() {
    return [this](const Event& e) {
      if (e.kind == Event::Kind::node_waiting) node.set_value(std::string(e.node));
    };
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(rows_of_runs, RowsOfRunsFixture)

BOOST_AUTO_TEST_CASE(files_are_named_in_the_order_of_the_row_whoever_is_done_first) {
  Gate gate;
  Waiting waiting;
  Run first = engine.start(flow(1), {.observer = gate.observer()});
  Run second = engine.start(flow(2), {.observer = waiting.observer(), .writes_after = first.id()});
  BOOST_TEST(test::given(std::move(waiting.waits), "the wait for its turn") == "save");
  BOOST_TEST(content("1") == "");
  gate.open.set_value();
  second.wait();
  BOOST_TEST(content("1") == "11");
  BOOST_TEST(content("2") == "12");
}

BOOST_AUTO_TEST_CASE(a_run_that_is_over_passes_the_turn_on_only_when_its_own_has_come) {
  Gate gate;
  Waiting waiting;
  Run first = engine.start(flow(1), {.observer = gate.observer()});
  std::uint64_t failed = 0;
  {
    Run second = engine.start(flow(2, true), {.writes_after = first.id()});
    failed = second.id();
    BOOST_TEST(engine_refusal([&] { second.wait(); }).find("asked to fail") != std::string::npos);
  }
  Run third = engine.start(flow(3), {.observer = waiting.observer(), .writes_after = failed});
  BOOST_TEST(test::given(std::move(waiting.waits), "the wait for its turn") == "save");
  gate.open.set_value();
  third.wait();
  BOOST_TEST(content("1") == "11");
  BOOST_TEST(content("2") == "13");
}

BOOST_AUTO_TEST_CASE(a_run_that_waits_for_its_turn_can_be_cancelled) {
  Gate gate;
  Waiting waiting;
  Run first = engine.start(flow(1), {.observer = gate.observer()});
  Run second = engine.start(flow(2), {.observer = waiting.observer(), .writes_after = first.id()});
  test::given(std::move(waiting.waits), "the wait for its turn");
  second.cancel();
  BOOST_CHECK_EXCEPTION(second.wait(), EngineError,
                        [](const EngineError& e) { return e.code() == HEDDLE_CANCELLED; });
  gate.open.set_value();
  first.wait();
  BOOST_TEST(content("2") == "");
}

BOOST_AUTO_TEST_CASE(nobody_waits_for_a_run_that_is_over_or_never_was) {
  Run first = engine.start(flow(1));
  first.wait();
  engine.start(flow(2), {.writes_after = first.id()}).wait();
  engine.start(flow(3), {.writes_after = std::uint64_t{1} << 60}).wait();
  BOOST_TEST(content("3") == "13");
}

BOOST_AUTO_TEST_CASE(a_run_says_which_devices_it_keeps_busy_and_the_next_one_takes_others) {
  const test::FakeControl control;
  Engine fakes(test::fake_engine_options({"fake:0", "fake:1"}));
  const Workflow keep = fakes.parse(
      workflow({{"x", R"({"class_type": "test.ramp", "inputs": {}})"},
                {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["x", 0]}})"}}));
  Gate gate;
  Run first = fakes.start(keep, {.observer = gate.observer(), .among_many = true});
  Run second = fakes.start(keep, {.among_many = true});
  gate.open.set_value();
  BOOST_TEST((first.devices() == std::vector<std::string>{"fake:0"}));
  BOOST_TEST((second.devices() == std::vector<std::string>{"fake:1"}));
}

BOOST_AUTO_TEST_SUITE_END()
