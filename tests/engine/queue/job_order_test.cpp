// Moves, pauses and cancels.
#include <boost/test/unit_test.hpp>

#include "tests/engine/queue/queue_fixture.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::engine;
using namespace heddle::test;

namespace {

struct Waiting {
  TemporaryFolder folder;
  JobQueue queue{folder / "queue.db"};
  Waiting() {
    for (const char* id : {"a", "b", "c", "d", "e"}) queue.submit({job_of(id)});
  }
};

std::string cancelled(const JobQueue::Cancelled& what) {
  std::string text = join(what.ended, " ");
  for (const JobClaim& claim : what.running)
    text += cat(" (", claim.id, " ", claim.generation, ")");
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(job_order)

BOOST_FIXTURE_TEST_CASE(jobs_are_moved, Waiting) {
  BOOST_TEST(queue.move_before("e", "b"));
  BOOST_TEST(waiting(queue) == "a e b c d");
  BOOST_TEST(queue.move_to_front("c"));
  BOOST_TEST(waiting(queue) == "c a e b d");
  BOOST_TEST(queue.move_to_back("a"));
  BOOST_TEST(waiting(queue) == "c e b d a");
  BOOST_TEST(queue.move_before("a", "a"));
  BOOST_TEST(queue.move_to_front("c"));
  BOOST_TEST(waiting(queue) == "c e b d a");
  queue.submit({job_of("f")});  // behind all, as ever
  BOOST_TEST(waiting(queue) == "c e b d a f");
  BOOST_TEST(!queue.move_before("none", "a"));
  BOOST_TEST(!queue.move_before("a", "none"));
  BOOST_TEST(queue.claim()->id == "c");
  BOOST_TEST(!queue.move_before("a", "c"));  // runs
  BOOST_TEST(!queue.move_to_front("c"));
}

// Others still take turns with whoever moves a job of theirs away.
BOOST_AUTO_TEST_CASE(what_is_moved_to_the_back_holds_nobody_up) {
  const TemporaryFolder folder;
  JobQueue queue{folder / "queue.db"};
  const auto submit = [&](const char* id, const char* user) {
    NewJob job = job_of(id);
    job.user = user;
    queue.submit({job});
  };
  for (const char* id : {"a", "b", "c"}) submit(id, "ann");
  BOOST_TEST(queue.move_to_front("a"));
  BOOST_TEST(queue.move_to_back("a"));
  for (const char* id : {"d", "e"}) submit(id, "bob");
  BOOST_TEST(waiting(queue) == "b d c e a");
}

BOOST_FIXTURE_TEST_CASE(there_is_always_room_between_two, Waiting) {
  for (int i = 0; i < 300; ++i) {
    queue.move_before(i % 2 == 0 ? "d" : "e", i % 2 == 0 ? "e" : "d");
    queue.move_before("c", i % 2 == 0 ? "e" : "d");
  }
  BOOST_TEST(waiting(queue) == "a b e c d");
}

BOOST_FIXTURE_TEST_CASE(a_priority_counts_before_any_number, Waiting) {
  BOOST_TEST(queue.set_priority("d", 2));
  BOOST_TEST(waiting(queue) == "d a b c e");
  BOOST_TEST(queue.move_before("e", "d"));  // has its priority from now on
  BOOST_TEST(queue.find("e")->priority == 2);
  BOOST_TEST(waiting(queue) == "e d a b c");
}

BOOST_FIXTURE_TEST_CASE(paused_jobs_keep_their_place, Waiting) {
  BOOST_TEST(queue.pause("a"));
  BOOST_TEST(queue.pause("c"));
  BOOST_TEST(!queue.pause("c"));
  BOOST_TEST(!queue.pause("none"));
  BOOST_TEST(waiting(queue) == "b d e");
  BOOST_TEST(ids_of(queue.list(JobState::paused)) == "a c");
  BOOST_TEST(queue.claim()->id == "b");
  BOOST_TEST(queue.resume("a"));
  BOOST_TEST(!queue.resume("b"));
  BOOST_TEST(queue.claim()->id == "a");
}

BOOST_FIXTURE_TEST_CASE(a_paused_queue_gives_nothing_also_after_a_restart, Waiting) {
  queue.pause_all(true);
  BOOST_TEST(!queue.claim());
  BOOST_TEST(queue.is_paused());
  const TemporaryFolder other;
  queue.back_up(other / "copy.db");
  JobQueue again(other / "copy.db");
  BOOST_TEST(again.is_paused());
  BOOST_TEST(!again.claim());
  again.pause_all(false);
  BOOST_TEST(again.claim()->id == "a");
}

BOOST_FIXTURE_TEST_CASE(cancels_reach_what_they_name_and_nothing_else, Waiting) {
  queue.claim();
  queue.claim();
  NewJob job = job_of("f");
  job.user = "anna";
  job.tag = "t";
  job.batch = "b";
  queue.submit({job});
  job.id = "g";
  job.user = "bert";
  queue.submit({job});
  BOOST_TEST(cancelled(queue.cancel({})) == "");
  BOOST_TEST(cancelled(queue.cancel({.ids = {"none"}})) == "");
  queue.pause("c");
  // What runs is told by whoever runs it; it is written that it shall stop.
  BOOST_TEST(cancelled(queue.cancel({.ids = {"b", "c", "d"}})) == "c d (b 1)");
  BOOST_TEST(queue.is_cancel_wanted({"b", 1}));
  BOOST_TEST(!queue.is_cancel_wanted({"a", 1}));
  BOOST_TEST((queue.find("b")->state == JobState::running));
  BOOST_TEST((queue.find("c")->state == JobState::cancelled));
  BOOST_TEST(cancelled(queue.cancel({.all = true, .only_running = true})) == " (a 1) (b 1)");
  BOOST_TEST(cancelled(queue.cancel({.ids = {"e", "b"}, .only_running = true})) == " (b 1)");
  BOOST_TEST(cancelled(queue.cancel({.batch = "b", .user = "anna"})) == "f");
  BOOST_TEST(cancelled(queue.cancel({.tag = "t"})) == "g");
  BOOST_TEST(cancelled(queue.cancel({.all = true, .but_running = true})) == "e");
  BOOST_TEST(cancelled(queue.cancel({.all = true})) == " (a 1) (b 1)");
  BOOST_TEST(ids_of(queue.history()) == "c d f g e");
  // A claim that ends as if nothing had been said, ends so.
  BOOST_TEST(queue.finish({"a", 1}, {}));
  BOOST_TEST((queue.find("a")->state == JobState::done));
  BOOST_TEST(ids_of(queue.history(9, 0, false, true)) == "a");  // the only one that has run
  BOOST_TEST(ids_of(queue.history(9, 0, true, true)) == "a");
  BOOST_TEST(!queue.give_back({"b", 1}));  // would run again though it is cancelled
}

BOOST_AUTO_TEST_SUITE_END()
