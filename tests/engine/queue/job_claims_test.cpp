// Whose turn it is in a queue: users, background jobs, warm models; and what it learns of runs.
#include <boost/test/unit_test.hpp>

#include "tests/engine/queue/queue_fixture.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::engine;
using namespace heddle::test;

namespace {

struct Turns {
  TemporaryFolder folder;
  std::int64_t time = 1000;
  JobQueueOptions options;
  std::unique_ptr<JobQueue> queue;

  Turns() {
    options.clock = [this] { return time; };
    options.patience_ms = 60'000;
    open();
  }
  void open() {
    queue.reset();
    queue = std::make_unique<JobQueue>(folder / "queue.db", options);
  }
  void submit(const std::string& id, const std::string& user, const std::string& model = "",
              bool is_background = false) {
    NewJob job = job_of(id);
    job.user = user;
    job.model = model;
    job.kind = model.empty() ? "" : model + " small";
    job.is_background = is_background;
    queue->submit({job});
  }
  // Runs the next one for so many ms, which it keeps a device busy.
  std::string run(std::int64_t ms, const ClaimWish& wish = {}) {
    const std::optional<Job> job = queue->claim(wish);
    if (!job) return "";
    time += ms;
    queue->finish(claim_of(*job), {JobState::done, "", "", double(ms) / 1000});
    return job->id;
  }
  std::string run_all(std::int64_t ms) {
    std::string text;
    for (std::string id = run(ms); !id.empty(); id = run(ms)) text += id + " ";
    return text;
  }
  std::string told_waits(std::size_t workers) const {
    std::string text;
    for (const auto& [id, seconds] : queue->expected_waits(workers))
      text += cat(id, " ", seconds, " ");
    return text;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(job_claims)

BOOST_FIXTURE_TEST_CASE(users_take_turns_and_lists_tell_so, Turns) {
  for (const char* id : {"a1", "a2", "a3"}) submit(id, "anna");
  for (const char* id : {"b1", "b2"}) submit(id, "bert");
  BOOST_TEST(waiting(*queue) == "a1 b1 a2 b2 a3");
  BOOST_TEST(ids_of(queue->list(JobState::pending, 2, 1)) == "b1 a2");
  BOOST_TEST(ids_of(queue->waiting()) == "a1 b1 a2 b2 a3");
  BOOST_TEST(queue->position("b1").value() == 1);
  BOOST_TEST(!queue->position("none"));
  BOOST_TEST(join(queue->pending_ids(), " ") == "a1 b1 a2 b2 a3");
  queue->pause("a1");
  BOOST_TEST(waiting(*queue) == "a2 b1 a3 b2");
  BOOST_TEST(ids_of(queue->waiting()) == "a1 b1 a2 b2 a3");
  BOOST_TEST(run_all(100) == "a2 b1 a3 b2 ");
}

BOOST_FIXTURE_TEST_CASE(who_has_used_less_is_first, Turns) {
  submit("a1", "anna");
  submit("b1", "bert");
  BOOST_TEST(run(5000) == "a1");
  for (const char* id : {"a2", "a3"}) submit(id, "anna");
  for (const char* id : {"b2", "b3", "b4"}) submit(id, "bert");
  BOOST_TEST(run_all(1000) == "b1 b2 b3 b4 a2 a3 ");
  // Neither idle time nor what was long ago counts for who comes back: but for the last job.
  submit("a4", "anna");
  submit("c1", "carl");
  submit("c2", "carl");
  submit("a5", "anna");
  BOOST_TEST(run_all(1000) == "c1 a4 c2 a5 ");
}

BOOST_FIXTURE_TEST_CASE(a_claim_that_is_given_back_costs_nothing, Turns) {
  submit("a1", "anna");
  submit("b1", "bert");
  submit("a2", "anna");
  queue->give_back(claim_of(queue->claim().value()));
  BOOST_TEST(queue->claim()->id == "a1");
  open();  // as after a crash
  BOOST_TEST(run_all(1) == "a1 b1 a2 ");
}

BOOST_FIXTURE_TEST_CASE(background_jobs_are_last_until_they_have_waited_for_long, Turns) {
  submit("night", "bert", "", true);
  submit("a1", "anna");
  submit("a2", "anna");
  BOOST_TEST(waiting(*queue) == "a1 a2 night");
  const Job first = queue->claim().value();
  BOOST_TEST(first.id == "a1");
  BOOST_TEST(!queue->gives_way(first));
  const Job night = queue->find("night").value();
  BOOST_TEST(night.is_background);
  BOOST_TEST(queue->gives_way(night));
  time += options.patience_ms;
  BOOST_TEST(!queue->gives_way(night));
  BOOST_TEST(waiting(*queue) == "night a2");
  BOOST_TEST(run(1, {.interactive_only = true}) == "night");
  submit("later", "bert", "", true);
  BOOST_TEST(run(1, {.interactive_only = true}) == "a2");
  BOOST_TEST(run(1, {.interactive_only = true}) == "");
  BOOST_TEST(run(1) == "later");
}

BOOST_FIXTURE_TEST_CASE(warm_models_overtake_three_times, Turns) {
  for (const char* id : {"x1", "x2", "x3", "x4", "x5", "x6"})
    submit(id, "", *(id + 1) % 2 == 0 ? "even" : "odd");
  std::string order;
  for (int i = 0; i < 6; ++i) order += run(10, {.warm = {"even"}}) + " ";
  BOOST_TEST(order == "x2 x4 x6 x1 x3 x5 ");
  for (int i = 1; i <= 9; ++i) submit(cat("y", i), "", i == 1 ? "odd" : "even");
  order.clear();
  for (int i = 0; i < 5; ++i) order += run(10, {.warm = {"even"}}) + " ";
  BOOST_TEST(order == "y2 y3 y4 y1 y5 ");
}

BOOST_FIXTURE_TEST_CASE(what_was_moved_stays_where_it_was_put, Turns) {
  for (const char* id : {"a1", "a2", "a3"}) submit(id, "anna");
  for (const char* id : {"b1", "b2"}) submit(id, "bert");
  BOOST_TEST(queue->move_to_front("a3"));
  BOOST_TEST(waiting(*queue) == "a3 b1 a1 b2 a2");
  BOOST_TEST(queue->move_before("b2", "a1"));
  BOOST_TEST(waiting(*queue) == "a3 b2 a1 b1 a2");
  BOOST_TEST(run_all(1000) == "a3 b2 a1 b1 a2 ");
}

BOOST_FIXTURE_TEST_CASE(waits_are_told_by_what_was_measured, Turns) {
  submit("first", "", "flux");
  submit("second", "", "flux");
  BOOST_TEST(told_waits(1) == "first 0 ");  // nothing is known of such jobs
  BOOST_TEST(run(20'000) == "first");
  submit("other", "", "sdxl");
  submit("third", "", "flux");
  BOOST_TEST(told_waits(1) == "other 20 second 0 third 40 ");  // of all, where there is no better
  open();
  BOOST_TEST(told_waits(2) == "other 0 second 0 third 20 ");
  const Job running = queue->claim().value();
  time += 5000;
  BOOST_TEST(told_waits(1) == "other 15 third 35 ");
  // One that failed, or had nothing to do, is no measure.
  queue->finish(claim_of(running), {JobState::failed, "", "", 100});
  BOOST_TEST(told_waits(1) == "other 0 third 20 ");
  const Job cached = queue->claim().value();
  queue->finish(claim_of(cached), {JobState::done, "", "", 0});
  submit("fourth", "", "flux");
  BOOST_TEST(told_waits(1) == "fourth 20 third 0 ");
}

BOOST_AUTO_TEST_SUITE_END()
