// Who wants to know of changes is told which jobs they are of.
#include <boost/test/unit_test.hpp>
#include <stdexcept>

#include "engine/base/log.h"
#include "tests/engine/queue/queue_fixture.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::engine;
using namespace heddle::test;

BOOST_AUTO_TEST_SUITE(job_changes)

BOOST_AUTO_TEST_CASE(every_change_names_its_jobs) {
  TemporaryFolder folder;
  std::vector<std::string> told;
  JobQueueOptions options;
  options.changed = [&](const std::vector<std::string>& ids) { told.push_back(join(ids, " ")); };
  JobQueue queue(folder / "queue.db", options);
  const auto last = [&] { return std::exchange(told, {}); };
  const auto once = [](const std::string& ids) { return std::vector<std::string>{ids}; };
  const auto each = boost::test_tools::per_element();
  queue.submit({job_of("a"), job_of("b"), job_of("c")});
  BOOST_TEST(last() == once("a b c"), each);
  queue.move_to_front("b");
  BOOST_TEST(last() == once("b"), each);
  queue.set_priority("b", 1);
  BOOST_TEST(last() == once("b"), each);
  queue.pause("c");
  BOOST_TEST(last() == once("c"), each);
  const Job claimed = queue.claim().value();
  BOOST_TEST(last() == once("b"), each);
  queue.cancel({.all = true});
  BOOST_TEST(last() == once("a c b"), each);  // b runs, and is wanted to end
  queue.finish(claim_of(claimed), {JobState::cancelled, "", ""});
  BOOST_TEST(last() == once("b"), each);
  queue.forget({"a"});
  BOOST_TEST(last() == once("a"), each);
  queue.pause_all(true);
  BOOST_TEST(last() == once(""), each);
  BOOST_TEST(!queue.pause("a"));
  BOOST_TEST(!queue.claim());
  BOOST_TEST(told.empty());  // nothing has changed
}

// It would run nowhere, and wait no more.
BOOST_AUTO_TEST_CASE(a_claim_holds_where_nobody_can_be_told) {
  TemporaryFolder folder;
  bool is_broken = false;
  JobQueueOptions options;
  options.changed = [&](const std::vector<std::string>&) {
    if (is_broken) throw std::runtime_error("broken");
  };
  JobQueue queue(folder / "queue.db", options);
  queue.submit({job_of("a")});
  std::string said;
  set_log_sink([&](Level, std::string_view message) { said += message; });
  is_broken = true;
  const std::optional<Job> claimed = queue.claim();
  set_log_sink({});
  BOOST_TEST_REQUIRE(claimed.has_value());
  BOOST_TEST(claimed->id == "a");
  BOOST_TEST(said.find("broken") != std::string::npos);
}

// It would be asked for again, and be there twice.
BOOST_AUTO_TEST_CASE(what_is_written_holds_where_nobody_can_be_told) {
  TemporaryFolder folder;
  JobQueueOptions options;
  options.changed = [&](const std::vector<std::string>&) { throw std::runtime_error("broken"); };
  JobQueue queue(folder / "queue.db", options);
  std::string said;
  set_log_sink([&](Level, std::string_view message) { said += message; });
  BOOST_CHECK_NO_THROW(queue.submit({job_of("a"), job_of("b")}));
  BOOST_TEST(queue.pause("b"));
  const std::optional<Job> claimed = queue.claim();
  BOOST_TEST_REQUIRE(claimed.has_value());
  BOOST_TEST(queue.finish(claim_of(*claimed), {JobState::done, "", ""}));
  BOOST_TEST(queue.forget({"a"}) == 1);
  set_log_sink({});
  BOOST_TEST(queue.counts().paused == 1);
  BOOST_TEST(said.find("not all know: jobs a, b: broken") != said.npos, said);
}

BOOST_AUTO_TEST_SUITE_END()
