#include "engine/base/log.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <string>
#include <thread>
#include <vector>

using namespace heddle::engine;

namespace {

// Brings the defaults back, whatever a test did.
struct LogReset {
  ~LogReset() {
    set_log_sink({});
    set_log_level(Level::info);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(log_test, LogReset)

BOOST_AUTO_TEST_CASE(messages_reach_the_sink_with_their_level) {
  std::vector<std::string> lines;
  set_log_sink([&](Level level, std::string_view message) {
    lines.push_back(std::string(level_name(level)) + ": " + std::string(message));
  });
  log(Level::warning, "no space");
  log(Level::error, "no device");
  BOOST_TEST(lines == (std::vector<std::string>{"warning: no space", "error: no device"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(messages_below_the_level_are_dropped) {
  int count = 0;
  set_log_sink([&](Level, std::string_view) { ++count; });
  log(Level::debug, "dropped");
  BOOST_TEST(count == 0);
  set_log_level(Level::debug);
  log(Level::debug, "kept");
  BOOST_TEST(count == 1);
  set_log_level(Level::error);
  log(Level::warning, "dropped");
  BOOST_TEST(count == 1);
}

BOOST_AUTO_TEST_CASE(a_sink_may_log_and_replace_itself) {
  int outer = 0, inner = 0;
  set_log_sink([&](Level, std::string_view) {
    ++outer;
    set_log_sink([&](Level, std::string_view) { ++inner; });
    log(Level::info, "from the sink");
  });
  log(Level::info, "first");
  BOOST_TEST(outer == 1);
  BOOST_TEST(inner == 1);
}

BOOST_AUTO_TEST_CASE(threads_may_log_while_the_sink_changes) {
  std::atomic<int> count = 0;
  set_log_sink([&](Level, std::string_view) { ++count; });
  {
    std::jthread writer([] {
      for (int i = 0; i < 1000; ++i) log(Level::info, "x");
    });
    for (int i = 0; i < 100; ++i) set_log_sink([&](Level, std::string_view) { ++count; });
  }
  BOOST_TEST(count == 1000);
}

BOOST_AUTO_TEST_SUITE_END()
