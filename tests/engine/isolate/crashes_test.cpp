// An isolated node that ends its process: what the run is told, and that others notice nothing.
#include <atomic>
#include <boost/test/data/test_case.hpp>
#include <csignal>
#include <thread>

#include "tests/engine/isolate/isolated_fixture.h"

using namespace heddle;
using test::child_processes;
using test::ending_workflow;
using test::engine_refusal;
using test::isolated_options;
using test::open_descriptors;
using test::run_text;
using test::shared_mappings;

BOOST_AUTO_TEST_SUITE(crashes)

namespace {

struct Way {
  const char* how;
  const char* told;
};
const Way kWays[] = {
    {"null", "was ended by signal 11 (SIGSEGV)"},
    {"abort", "was ended by signal 6 (SIGABRT)"},
    {"stack", "was ended by signal 11 (SIGSEGV)"},
    {"kill", "was ended by signal 9 (SIGKILL)"},
    {"exit", "ended with exit code 3"},
};
const Way kHang = {"hang", "has not ended within 10 s"};
std::ostream& operator<<(std::ostream& out, const Way& way) { return out << way.how; }

// Runs of an engine: each of `threads` threads makes `runs`, and every second one of them crashes.
void crash_beside_others(Engine& engine, int threads, int runs) {
  std::atomic<int> wrong = 0, crashed = 0;
  std::vector<std::jthread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      for (int i = 0; i < runs; ++i) {
        const std::size_t number = std::size_t(t + i / 2) % (std::size(kWays) + 1);
        const Way& way = number == std::size(kWays) ? kHang : kWays[number];
        const bool crashes = i % 2 == 0;
        std::string text, error;
        try {
          text = run_text(engine, ending_workflow(crashes ? way.how : "", 100 * t + i));
        } catch (const EngineError& failure) {
          error = failure.what();
        }
        const bool is_right = crashes ? error.find(way.told) != std::string::npos && text.empty()
                                      : error.empty() && text == std::to_string(100 * t + i + 1);
        if (!is_right) ++wrong;
        if (!is_right) BOOST_TEST_MESSAGE(way.how << ": '" << text << "' " << error);
        crashed += crashes ? 1 : 0;
      }
    });
  all.clear();
  BOOST_TEST(wrong == 0);
  BOOST_TEST(crashed == threads * ((runs + 1) / 2));
}

void check_many_crashes(int crashes) {
  const std::size_t children = child_processes(), mappings = shared_mappings();
  {  // what is made once in a process
    Engine engine(isolated_options());
    BOOST_TEST(run_text(engine, ending_workflow("")) == "2");
  }
  const std::size_t descriptors = open_descriptors();
  {
    EngineOptions options = isolated_options();
    options.isolation.call_seconds = 10;
    Engine engine(options);
    crash_beside_others(engine, 8, crashes / 4);
  }
  BOOST_TEST(child_processes() == children);
  BOOST_TEST(shared_mappings() == mappings);
  BOOST_TEST(open_descriptors() == descriptors);
}

}  // namespace

BOOST_DATA_TEST_CASE(the_run_is_told_the_plugin_and_the_signal, boost::unit_test::data::make(kWays),
                     way) {
  Engine engine(isolated_options());
  const std::string error = engine_refusal([&] { run_text(engine, ending_workflow(way.how)); });
  BOOST_TEST_CONTEXT(error) {
    BOOST_TEST((error.find(way.told) != std::string::npos));
    BOOST_TEST((error.find("'org.heddle.tests.isolated'") != std::string::npos));
    BOOST_TEST((error.find("'test.isolated.end'") != std::string::npos));
  }
  BOOST_TEST(run_text(engine, ending_workflow("", 7)) == "8");
}

BOOST_AUTO_TEST_CASE(a_node_that_fails_says_what_it_says) {
  Engine engine(isolated_options());
  BOOST_TEST(engine_refusal([&] { run_text(engine, ending_workflow("throw")); }) ==
             "node 'end' (test.isolated.end): it was asked to fail");
}

BOOST_AUTO_TEST_CASE(a_node_that_hangs_is_ended) {
  EngineOptions options = isolated_options();
  options.isolation.call_seconds = 5;
  Engine engine(options);
  const std::string error = engine_refusal([&] { run_text(engine, ending_workflow("hang")); });
  BOOST_TEST_CONTEXT(error)
  BOOST_TEST((error.find("has not ended within 5 s") != std::string::npos));
  BOOST_TEST(run_text(engine, ending_workflow("", 7)) == "8");
}

BOOST_AUTO_TEST_CASE(a_run_that_is_cancelled_tells_its_node) {
  Engine engine(isolated_options());
  std::atomic<bool> works = false;
  StartOptions start;
  start.observer = [&](const heddle::Event& event) {
    if (event.kind == heddle::Event::Kind::node_progress) works = true;
  };
  Run run = engine.start(engine.parse(ending_workflow("until cancelled")), std::move(start));
  while (!works) std::this_thread::yield();
  run.cancel();
  try {
    run.wait();
    BOOST_ERROR("it was not cancelled");
  } catch (const EngineError& error) {
    BOOST_TEST(error.code() == HEDDLE_CANCELLED);
  }
  BOOST_TEST(run_text(engine, ending_workflow("", 7)) == "8");
}

BOOST_AUTO_TEST_CASE(a_pipe_without_a_reader_ends_nobody) {
  Engine engine(isolated_options());
  BOOST_TEST(run_text(engine, ending_workflow("pipe", 7)) == "8");
}

// A program that does not care for its children: the system waits for them, and nobody is told how
// they ended.
BOOST_AUTO_TEST_CASE(who_ignores_sigchld_runs_isolated_plugins) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  {
    EngineOptions options = isolated_options();
    options.isolation.call_seconds = 5;
    Engine engine(options);
    for (const char* way : {"abort", "exit", "hang"}) {
      const std::string error = engine_refusal([&] { run_text(engine, ending_workflow(way)); });
      const char* const told =
          way == std::string("hang") ? "has not ended within 5 s" : "somebody else was told how";
      BOOST_TEST((error.find(told) != std::string::npos), error);
      BOOST_TEST(run_text(engine, ending_workflow("", 7)) == "8");
    }
  }
  BOOST_TEST(child_processes() == 0u);
  std::signal(SIGCHLD, before);
}

BOOST_AUTO_TEST_CASE(crashes_of_eight_runs_are_their_own) { check_many_crashes(60); }

BOOST_AUTO_TEST_CASE(a_thousand_crashes_leave_nothing, *boost::unit_test::label("long")) {
  check_many_crashes(1000);
}

BOOST_AUTO_TEST_SUITE_END()
