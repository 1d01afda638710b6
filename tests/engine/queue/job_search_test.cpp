// Lists by state, tag, batch and user, and places in the queue.
#include <boost/test/unit_test.hpp>

#include "tests/engine/queue/queue_fixture.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::engine;
using namespace heddle::test;

namespace {

// a is done, b runs, c waits, d is paused, e waits and has a priority.
struct Mixed {
  TemporaryFolder folder;
  JobQueue queue{folder / "queue.db"};
  Mixed() {
    for (const char* id : {"a", "b", "c", "d", "e"}) {
      NewJob job = job_of(id);
      job.tag = *id < 'c' ? "early" : "late";
      job.batch = *id == 'b' || *id == 'd' ? "even" : "odd";
      job.user = *id == 'e' ? "eve" : "adam";
      queue.submit({job});
      if (*id == 'd') begin_two();
    }
    queue.pause("d");
    queue.set_priority("e", 1);
  }
  void begin_two() {
    const Job first = queue.claim().value();
    queue.finish({first.id, first.generation}, {JobState::done, "{\"1\":{}}", "{}"});
    queue.claim();
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(job_search)

BOOST_FIXTURE_TEST_CASE(jobs_are_found_by_what_is_known_of_them, Mixed) {
  const auto found = [&](const JobSearch& search) {
    const std::vector<Job> jobs = queue.search(search);
    BOOST_TEST(queue.count_of(search) == std::int64_t(jobs.size()));
    return ids_of(jobs);
  };
  BOOST_TEST(found({}) == "e d c b a");
  BOOST_TEST(found({.states = {JobState::pending}}) == "e c");
  BOOST_TEST(found({.states = {JobState::done, JobState::paused}}) == "d a");
  BOOST_TEST(found({.states = {JobState::failed}}) == "");
  BOOST_TEST(found({.tag = "early"}) == "b a");
  BOOST_TEST(found({.batch = "even"}) == "d b");
  BOOST_TEST(found({.user = "eve"}) == "e");
  BOOST_TEST(found({.batch = "even", .tag = "late", .user = "adam"}) == "d");
  BOOST_TEST(found({.tag = "' OR 1 --"}) == "");
}

BOOST_FIXTURE_TEST_CASE(a_list_has_pages, Mixed) {
  const JobSearch first{.limit = 2};
  const std::vector<Job> page = queue.search(first);
  BOOST_TEST(ids_of(page) == "e d");
  BOOST_TEST(queue.count_of(first) == 5);
  queue.submit({job_of("f")});  // what comes meanwhile moves nothing
  BOOST_TEST(ids_of(queue.search({.before = page.back().sequence, .limit = 2})) == "c b");
  BOOST_TEST(ids_of(queue.search({.before = 1})) == "");
}

BOOST_FIXTURE_TEST_CASE(long_texts_are_left_out_and_outputs_are_not, Mixed) {
  const Job done = queue.search({.states = {JobState::done}}).front();
  BOOST_TEST(done.prompt == "");
  BOOST_TEST(done.outputs == "{\"1\":{}}");
  BOOST_TEST(queue.find("a")->prompt != "");
  const Job brief = queue.find_brief("a").value();
  BOOST_TEST(brief.prompt + brief.outputs + brief.status == "");
  BOOST_TEST(brief.tag == "early");
  BOOST_TEST((brief.state == JobState::done));
  BOOST_TEST(brief.sequence == done.sequence);
  BOOST_TEST(!queue.find_brief("none"));
}

BOOST_FIXTURE_TEST_CASE(places_are_those_of_the_order, Mixed) {
  BOOST_TEST(ids_of(queue.waiting()) == "e c d");
  BOOST_TEST(ids_of(queue.waiting(1, 1)) == "c");
  BOOST_TEST(queue.position("e").value() == 0);
  BOOST_TEST(queue.position("c").value() == 1);
  for (const char* none : {"a", "b", "d", "none"}) BOOST_TEST(!queue.position(none), none);
  BOOST_TEST(join(queue.pending_ids(), " ") == "e c");
  queue.resume("d");
  BOOST_TEST(queue.position("d").value() == 2);
  queue.move_to_front("d");
  BOOST_TEST(queue.position("d").value() == 0);
  BOOST_TEST(queue.position("e").value() == 1);
}

BOOST_AUTO_TEST_SUITE_END()
