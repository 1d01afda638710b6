#include "engine/queue/job_queue.h"

#include <boost/test/unit_test.hpp>
#include <map>
#include <regex>
#include <set>
#include <thread>

#include "tests/engine/queue/queue_fixture.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::engine;
using namespace heddle::test;

BOOST_AUTO_TEST_SUITE(job_queue)

BOOST_AUTO_TEST_CASE(a_job_keeps_all_that_was_said_of_it) {
  const TemporaryFolder folder;
  std::int64_t time = 1000;
  JobQueueOptions options;
  options.clock = [&] { return time++; };
  {
    JobQueue queue(folder / "queue.db", options);
    NewJob job = job_of("a", "{\"1\": {}}");
    job.priority = 3;
    job.number = -2.5;
    job.user = "anna";
    job.tag = "portraits";
    job.batch = "b1";
    job.client = "tab";
    job.extra_data = "{\"x\": 5.0}";
    job.targets = "[\"9\"]";
    queue.submit({job});
    const Job claimed = queue.claim().value();
    BOOST_TEST(claimed.generation == 1);
    BOOST_TEST(queue.finish(claim_of(claimed), {JobState::done, "{\"9\": 1}", "{\"ok\": true}"}));
  }
  const JobQueue queue(folder / "queue.db", options);
  const Job job = queue.find("a").value();
  BOOST_TEST((job.state == JobState::done));
  BOOST_TEST(job.priority == 3);
  BOOST_TEST(job.number == -2.5);
  BOOST_TEST(job.user + job.tag + job.batch + job.client == "annaportraitsb1tab");
  BOOST_TEST(job.prompt + job.extra_data + job.targets == "{\"1\": {}}{\"x\": 5.0}[\"9\"]");
  BOOST_TEST(job.outputs + job.status == "{\"9\": 1}{\"ok\": true}");
  BOOST_TEST(job.created_ms == 1000);
  BOOST_TEST(job.started_ms == 1001);
  BOOST_TEST(job.ended_ms == 1002);
  BOOST_TEST(!queue.find("b"));
}

BOOST_AUTO_TEST_CASE(jobs_run_by_priority_then_number_then_as_they_came) {
  const TemporaryFolder folder;
  JobQueue queue(folder / "queue.db");
  for (const char* id : {"a", "b", "c"}) queue.submit({job_of(id)});
  NewJob front = job_of("front");
  front.front = true;
  NewJob numbered = job_of("numbered");
  numbered.number = 0.5;
  NewJob same = job_of("same");
  same.number = 1;
  NewJob high = job_of("high");
  high.priority = 1;
  queue.submit({front, numbered, same, high});
  BOOST_TEST(waiting(queue) == "high front a numbered b same c");
  BOOST_TEST(queue.find("front")->number == -3);
  std::string order;
  while (const auto job = queue.claim()) order += job->id + " ";
  BOOST_TEST(order == "high front a numbered b same c ");
  BOOST_TEST(ids_of(queue.list(JobState::running)) == "a b c front numbered same high");
}

BOOST_AUTO_TEST_CASE(ids_are_made_and_are_unique) {
  const TemporaryFolder folder;
  JobQueue queue(folder / "queue.db");
  const std::string made = queue.submit({NewJob{}}).front().id;
  static const std::regex uuid(
      "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
  BOOST_TEST(std::regex_match(made, uuid), made);
  // All or none of several.
  BOOST_CHECK_THROW(queue.submit({job_of("new"), job_of(made)}), Error);
  BOOST_TEST(waiting(queue) == made);
}

BOOST_AUTO_TEST_CASE(what_is_said_of_an_old_claim_reaches_no_later_one) {
  const TemporaryFolder folder;
  JobQueue queue(folder / "queue.db");
  queue.submit({job_of("a")});
  const JobClaim first = claim_of(*queue.claim());
  BOOST_TEST(queue.give_back(first));
  BOOST_TEST(!queue.give_back(first));
  const JobClaim second = claim_of(*queue.claim());
  BOOST_TEST(second.generation == first.generation + 1);
  BOOST_TEST(!queue.finish(first, {JobState::failed, "", ""}));
  BOOST_TEST((queue.find("a")->state == JobState::running));
  queue.cancel({.ids = {"a"}});
  BOOST_TEST(queue.is_cancel_wanted(second));
  BOOST_TEST(queue.finish(second, {JobState::done, "", ""}));
  BOOST_TEST(!queue.finish(second, {JobState::failed, "", ""}));
  BOOST_TEST((queue.find("a")->state == JobState::done));
}

BOOST_AUTO_TEST_CASE(running_jobs_wait_again_after_a_restart) {
  const TemporaryFolder folder;
  JobClaim claim;
  {
    JobQueue queue(folder / "queue.db");
    queue.submit({job_of("a"), job_of("b"), job_of("c"), job_of("d")});
    claim = claim_of(*queue.claim());
    queue.finish(claim_of(*queue.claim()), {});
    queue.claim();
    BOOST_TEST(queue.cancel({.ids = {"c"}}).running.size() == 1u);
  }
  {
    JobQueue queue(folder / "queue.db");
    BOOST_TEST(waiting(queue) == "a d");
    BOOST_TEST((queue.find("c")->state == JobState::cancelled));  // as somebody wanted
    BOOST_TEST(!queue.finish(claim, {}));                         // of the process before
    queue.claim();
  }
  JobQueueOptions options;
  options.interrupted = JobQueueOptions::Interrupted::fail;
  const JobQueue queue(folder / "queue.db", options);
  BOOST_TEST(waiting(queue) == "d");
  BOOST_TEST(ids_of(queue.history()) == "b c a");
  BOOST_TEST((queue.find("a")->state == JobState::failed));
}

BOOST_AUTO_TEST_CASE(a_retry_is_a_new_job_that_names_the_old_one) {
  const TemporaryFolder folder;
  JobQueue queue(folder / "queue.db");
  NewJob job = job_of("a", "{\"p\": 1}");
  job.user = "anna";
  job.targets = "[\"9\"]";
  queue.submit({job});
  BOOST_CHECK_THROW(queue.retry("a"), Error);  // has not ended
  queue.finish(claim_of(*queue.claim()), {JobState::failed, "", ""});
  const Job again = queue.retry("a", "again");
  BOOST_TEST(again.id == "again");
  BOOST_TEST(again.retry_of == "a");
  BOOST_TEST(again.prompt + again.user + again.targets == "{\"p\": 1}anna[\"9\"]");
  BOOST_TEST((again.state == JobState::pending));
  BOOST_TEST(!again.from_start);
  BOOST_TEST((queue.find("a")->state == JobState::failed));
  BOOST_TEST(queue.retry("a", "anew", 0, true).from_start);
  queue.claim();
  BOOST_TEST(queue.claim()->from_start);
  BOOST_TEST(queue.find_brief("anew")->from_start);
  queue.finish(claim_of(*queue.find("anew")), {JobState::done, "", ""});
  BOOST_TEST(!queue.retry("anew", "again anew").from_start);
}

BOOST_AUTO_TEST_CASE(a_full_queue_refuses_and_history_forgets_the_oldest) {
  const TemporaryFolder folder;
  JobQueueOptions options;
  options.capacity = 3;
  options.history_limit = 2;
  JobQueue queue(folder / "queue.db", options);
  BOOST_CHECK_THROW(queue.submit({job_of("a"), job_of("b"), job_of("c"), job_of("d")}), QueueFull);
  BOOST_TEST(queue.counts().pending == 0);
  queue.submit({job_of("a"), job_of("b"), job_of("c")});
  queue.pause("c");
  const Job a = *queue.claim();
  BOOST_CHECK_THROW(queue.submit({job_of("d")}), QueueFull);  // running and paused ones count
  queue.finish(claim_of(a), {});
  queue.submit({job_of("d")});
  queue.finish(claim_of(*queue.claim()), {});
  queue.finish(claim_of(*queue.claim()), {});
  BOOST_TEST(ids_of(queue.history()) == "b d");
  BOOST_TEST(!queue.find("a"));
  BOOST_TEST(queue.counts().ended == 2);
  BOOST_TEST(queue.counts().paused == 1);
  BOOST_TEST(queue.prune(1) == 1);
  BOOST_TEST(queue.forget({"d", "c", "none"}) == 1);  // "c" has not ended
  BOOST_TEST(queue.counts().ended == 0);
}

BOOST_AUTO_TEST_CASE(history_is_in_the_order_of_ends_whatever_the_clock_says) {
  const TemporaryFolder folder;
  std::int64_t time = 10'000;
  JobQueueOptions options;
  options.clock = [&] { return time -= 100; };
  JobQueue queue(folder / "queue.db", options);
  for (const char* id : {"a", "b", "c", "d"}) queue.submit({job_of(id)});
  BOOST_TEST(waiting(queue) == "a b c d");
  while (const auto job = queue.claim()) queue.finish(claim_of(*job), {});
  BOOST_TEST(ids_of(queue.history()) == "a b c d");
  BOOST_TEST(ids_of(queue.history(2)) == "a b");
  BOOST_TEST(ids_of(queue.history(2, 1)) == "b c");
  BOOST_TEST(ids_of(queue.history(2, 0, true)) == "c d");
  BOOST_TEST(ids_of(queue.history(9, 9)) == "");
}

BOOST_AUTO_TEST_CASE(history_goes_by_age) {
  const TemporaryFolder folder;
  std::int64_t time = 1000;
  JobQueueOptions options;
  options.clock = [&] { return time; };
  JobQueue queue(folder / "queue.db", options);
  for (const char* id : {"a", "b", "c"}) {
    queue.submit({job_of(id)});
    BOOST_TEST(queue.finish(claim_of(*queue.claim()), {}));
    time += 1000;
  }
  queue.submit({job_of("waits")});
  BOOST_TEST(queue.prune_before(1000) == 0);
  BOOST_TEST(queue.prune_before(2001) == 2);
  BOOST_TEST(ids_of(queue.history()) == "c");
  BOOST_TEST(queue.prune_before(time * 2) == 1);
  BOOST_TEST(waiting(queue) == "waits");
}

// As schema 1 had it, with a job of each state.
constexpr std::string_view kOldest = R"(
CREATE TABLE jobs(
  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, state INTEGER NOT NULL,
  generation INTEGER NOT NULL DEFAULT 0, priority INTEGER NOT NULL, number REAL NOT NULL,
  rank REAL NOT NULL, cancel INTEGER NOT NULL DEFAULT 0, created INTEGER NOT NULL,
  started INTEGER NOT NULL DEFAULT 0, ended INTEGER NOT NULL DEFAULT 0, finished INTEGER,
  user TEXT NOT NULL, tag TEXT NOT NULL, batch TEXT NOT NULL, client TEXT NOT NULL,
  retry_of TEXT NOT NULL, prompt TEXT NOT NULL, extra_data TEXT NOT NULL, targets TEXT NOT NULL,
  outputs TEXT NOT NULL DEFAULT '', status TEXT NOT NULL DEFAULT '');
CREATE INDEX waiting ON jobs(priority DESC, number, rank) WHERE state = 0;
CREATE INDEX ordered ON jobs(priority DESC, number, rank) WHERE state IN (0, 5);
CREATE INDEX running ON jobs(seq) WHERE state = 1;
CREATE INDEX history ON jobs(finished) WHERE finished IS NOT NULL;
CREATE TABLE counters(name TEXT PRIMARY KEY, value INTEGER NOT NULL);
INSERT INTO counters VALUES('number', 3), ('finished', 1), ('paused', 0);
CREATE TABLE counts(state INTEGER PRIMARY KEY, jobs INTEGER NOT NULL);
INSERT INTO counts VALUES(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0);
CREATE TRIGGER job_comes AFTER INSERT ON jobs BEGIN
  UPDATE counts SET jobs = jobs + 1 WHERE state = new.state;
END;
CREATE TRIGGER job_changes AFTER UPDATE OF state ON jobs BEGIN
  UPDATE counts SET jobs = jobs - 1 WHERE state = old.state;
  UPDATE counts SET jobs = jobs + 1 WHERE state = new.state;
END;
CREATE TRIGGER job_goes AFTER DELETE ON jobs BEGIN
  UPDATE counts SET jobs = jobs - 1 WHERE state = old.state;
END;
INSERT INTO jobs VALUES
  (1, 'ended', 2, 1, 0, 0, 1, 0, 5, 6, 7, 1, 'u', 't', 'b', 'c', '', '{}', '', '', '{"9": 1}', 's'),
  (2, 'ran', 1, 1, 0, 1, 1, 0, 5, 6, 0, NULL, '', '', '', '', '', '{"1": 2}', '{}', '[]', '', ''),
  (3, 'paused', 5, 0, 0, 2, 1, 0, 5, 0, 0, NULL, '', '', '', '', '', '{}', '', '', '', ''),
  (4, 'waits', 0, 0, 4, 3, 1, 0, 5, 0, 0, NULL, 'v', '', '', '', '', '{}', '', '', '', ''),
  (9, 'gone', 2, 1, 0, 4, 1, 0, 5, 6, 7, 2, '', '', '', '', '', '{}', '', '', '', '');
DELETE FROM jobs WHERE seq = 9;
PRAGMA application_id = 1214540881;
PRAGMA user_version = 1;
)";

BOOST_AUTO_TEST_CASE(a_file_of_an_older_schema_is_upgraded_with_its_jobs) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "queue.db";
  Database(file).run(kOldest);
  for (int times = 0; times < 2; ++times) {
    JobQueue queue(file);
    BOOST_TEST(waiting(queue) == "waits ran");
    BOOST_TEST(queue.find("ran")->prompt == "{\"1\": 2}");
    BOOST_TEST(ids_of(queue.history()) == "ended");
    const Job ended = queue.find("ended").value();
    BOOST_TEST(ended.outputs + ended.status == "{\"9\": 1}s");
    BOOST_TEST(ended.user + ended.tag + ended.batch + ended.client == "utbc");
    BOOST_TEST((queue.find("paused")->state == JobState::paused));
    BOOST_TEST(queue.counts().pending == 2);
    BOOST_TEST(queue.counts().paused == 1);
    BOOST_TEST(queue.counts().ended == 1);
  }
  {
    JobQueue queue(file);
    BOOST_TEST(queue.submit({job_of("new")}).front().sequence == 10);  // none is used again
    BOOST_TEST(queue.claim()->id == "waits");
  }
  Database database(file);
  BOOST_TEST(database.ask("PRAGMA user_version") == kQueueSchema);
}

BOOST_AUTO_TEST_CASE(threads_claim_each_job_once) {
  const TemporaryFolder folder;
  JobQueue queue(folder / "queue.db");
  constexpr int kThreads = 16, kJobs = 1000;
  std::vector<std::vector<std::string>> claimed(kThreads);
  std::stop_source stop;
  std::atomic<int> done = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        // Both at once: some submit while others claim, and each does both.
        for (int i = 0; i < kJobs; ++i) {
          queue.submit({job_of(cat(t, ".", i))});
          if (i % 2 == 0) continue;
          for (int k = 0; k < 2; ++k) {
            const auto job = queue.wait_and_claim(stop.get_token());
            if (!job) return;
            claimed[t].push_back(job->id);
            if (++done == kThreads * kJobs) stop.request_stop();
          }
        }
      });
  }
  std::map<std::string, int> times;
  for (const auto& of_thread : claimed)
    for (const std::string& id : of_thread) ++times[id];
  BOOST_TEST(times.size() == std::size_t(kThreads * kJobs));  // none lost
  BOOST_TEST(std::ranges::all_of(times, [](const auto& one) { return one.second == 1; }));
  const JobCounts counts = queue.counts();
  BOOST_TEST(counts.pending == 0);
  BOOST_TEST(counts.running == kThreads * kJobs);
  BOOST_TEST_MESSAGE("transactions: " << queue.commits());
  BOOST_TEST(queue.commits() < std::uint64_t(2 * kThreads * kJobs));
}

// Counted in instructions of SQLite's machine.
BOOST_AUTO_TEST_CASE(a_claim_costs_the_same_however_many_wait) {
  const TemporaryFolder folder;
  const auto cost = [&](const std::string& name, int count) {
    JobQueueOptions options;
    options.capacity = count;
    JobQueue queue(folder / name, options);
    std::vector<NewJob> jobs(std::size_t(count), job_of(""));
    queue.submit(jobs);
    constexpr std::uint64_t kClaims = 50;
    for (std::uint64_t i = 0; i < kClaims; ++i) BOOST_TEST_REQUIRE(queue.claim().has_value());
    return queue.claim_steps() / kClaims;
  };
  const std::uint64_t few = cost("few.db", 100), many = cost("many.db", 10'000);
  BOOST_TEST_MESSAGE("instructions of a claim: " << few << " of 100, " << many << " of 10,000");
  BOOST_TEST(few > 0u);
  BOOST_TEST(many <= 2 * few);
}

BOOST_AUTO_TEST_CASE(who_waits_for_a_job_is_woken) {
  const TemporaryFolder folder;
  JobQueue queue(folder / "queue.db");
  const auto wait = [&](auto&& wake) {
    std::stop_source stop;
    std::optional<Job> job;
    std::jthread waiter([&] { job = queue.wait_and_claim(stop.get_token()); });
    wake(stop);
    waiter.join();
    return job ? job->id : "";
  };
  BOOST_TEST(wait([&](auto&) { queue.submit({job_of("a")}); }) == "a");
  queue.give_back({"a", 1});
  queue.pause("a");
  BOOST_TEST(wait([&](auto&) { queue.resume("a"); }) == "a");
  queue.pause_all(true);
  BOOST_TEST(wait([&](auto&) {
               queue.submit({job_of("b")});
               queue.pause_all(false);
             }) == "b");
  BOOST_TEST(wait([&](auto&) { queue.give_back({"b", 1}); }) == "b");
  BOOST_TEST(wait([&](auto& stop) { stop.request_stop(); }) == "");
}

BOOST_AUTO_TEST_CASE(a_backup_is_whole_while_jobs_come_and_go) {
  const TemporaryFolder folder;
  JobQueue queue(folder / "queue.db");
  const std::string large(20'000, 'x');
  for (int i = 0; i < 100; ++i) queue.submit({job_of(cat("first.", i), large)});
  std::atomic<bool> is_copied = false;
  std::jthread writer([&] {
    for (int i = 0; !is_copied; ++i) queue.submit({job_of(cat("more.", i))});
  });
  queue.back_up(folder / "copy.db");
  is_copied = true;
  writer.join();
  BOOST_CHECK_THROW(queue.back_up(folder / "copy.db"), Error);  // is there
  const JobQueue copy(folder / "copy.db");
  const std::vector<Job> jobs = copy.list(JobState::pending);
  BOOST_TEST(jobs.size() >= 100u);
  BOOST_TEST(std::int64_t(jobs.size()) == copy.counts().pending);
  for (int i = 0; i < 100; ++i) BOOST_TEST(copy.find(cat("first.", i))->prompt.size() == 20'000u);
}

BOOST_AUTO_TEST_SUITE_END()
