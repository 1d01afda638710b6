// A process is killed at random instants while it works on a queue; a checker counts what became
// of every job that it was promised.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "tests/engine/queue/queue_fixture.h"
#include "tests/support/temporary_folder.h"

extern char** environ;

using namespace heddle::engine;
using namespace heddle::test;

namespace {

pid_t start_worker(const std::string& queue, const std::string& log, int round, int jobs) {
  const std::string number = cat(round), count = cat(jobs);
  const char* const arguments[] = {HEDDLE_QUEUE_WORKER, queue.c_str(), log.c_str(),
                                   number.c_str(),      count.c_str(), nullptr};
  pid_t worker = 0;
  BOOST_TEST_REQUIRE(::posix_spawn(&worker, HEDDLE_QUEUE_WORKER, nullptr, nullptr,
                                   const_cast<char* const*>(arguments), environ) == 0);
  return worker;
}

int end_of(pid_t worker) {
  int status = 0;
  BOOST_TEST_REQUIRE(::waitpid(worker, &status, 0) == worker);
  return status;
}

struct Told {
  int offered = 0, accepted = 0, claimed = 0, done = 0, cancelled = 0;
  bool was_claimed_after_its_end = false;
};

// What stands in the log, in its order; a line is written after what it tells of.
std::map<std::string, Told> read_log(const std::string& file) {
  std::map<std::string, Told> told;
  std::ifstream log(file);
  for (std::string what, id; log >> what >> id;) {
    Told& of = told[id];
    if (what == "offered") ++of.offered;
    if (what == "accepted") ++of.accepted;
    if (what == "claimed") ++of.claimed;
    if (what == "done") ++of.done;
    if (what == "cancelled") ++of.cancelled;
    if (what == "claimed" && of.done + of.cancelled > 0) of.was_claimed_after_its_end = true;
  }
  return told;
}

std::uintmax_t size_of(const std::string& file) {
  std::error_code none;
  const std::uintmax_t size = std::filesystem::file_size(file, none);
  return none ? 0 : size;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(killed)

BOOST_AUTO_TEST_CASE(no_job_is_lost_and_none_is_done_twice) {
  const TemporaryFolder folder;
  const std::string file = folder / "queue.db", log = folder / "log";
  constexpr int kKills = 300, kJobs = 40;
  constexpr unsigned kSeed = 21;
  std::mt19937 random(kSeed);
  int killed = 0;
  for (int round = 0; round < kKills; ++round) {
    const std::uintmax_t told_before = size_of(log);
    const pid_t worker = start_worker(file, log, round, kJobs);
    // Half of them are killed at any time, also while they start, which takes long on a machine
    // that has other work; half of them when they have begun to.
    for (int left = 5000; round % 2 == 1 && size_of(log) == told_before && left > 0; --left)
      ::usleep(1000);
    const timespec pause{0, long(random() % 60'000'000)};
    ::nanosleep(&pause, nullptr);
    ::kill(worker, SIGKILL);
    killed += WIFSIGNALED(end_of(worker)) ? 1 : 0;
  }
  BOOST_TEST(killed > kKills / 2);
  const int status = end_of(start_worker(file, log, kKills, 1));
  BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 0));

  JobQueueOptions options;
  options.history_limit = 1'000'000;
  const JobQueue queue(file, options);
  const std::map<std::string, Told> told = read_log(log);
  std::size_t accepted = 0, done = 0, cancelled = 0, without_word = 0, claimed_again = 0;
  for (const auto& [id, of] : told) {
    accepted += of.accepted > 0;
    claimed_again += of.claimed > 1;
    BOOST_TEST(!of.was_claimed_after_its_end, id << " ran again after its end");
    BOOST_TEST(of.done + of.cancelled <= 1, id << " has ended twice");
    const std::optional<Job> job = queue.find(id);
    if (!job) {
      BOOST_TEST(of.accepted == 0, id << " was accepted and is lost");
      continue;
    }
    without_word += of.accepted == 0;
    BOOST_TEST(has_ended(job->state), id << " is " << job_state_name(job->state));
    done += job->state == JobState::done;
    cancelled += job->state == JobState::cancelled;
    if (of.done > 0) BOOST_TEST((job->state == JobState::done), id);
    if (of.cancelled > 0) BOOST_TEST((job->state == JobState::cancelled), id);
    if (job->state == JobState::done) BOOST_TEST(job->outputs == cat("\"", id, "\""));
  }
  BOOST_TEST(std::size_t(queue.counts().ended) == done + cancelled);
  BOOST_TEST_MESSAGE(killed << " kills: " << accepted << " jobs accepted, " << without_word
                            << " more were there without a word, " << done << " done, " << cancelled
                            << " cancelled, " << claimed_again << " claimed again after a kill");
  BOOST_TEST(accepted > 100u);
  BOOST_TEST(claimed_again > 0u);
  BOOST_TEST(cancelled > 0u);
}

BOOST_AUTO_TEST_SUITE_END()
