// A job that would be given several devices waits a moment for others that come with it.
#include "engine/serve/other_jobs.h"

#include <boost/test/unit_test.hpp>
#include <future>

#include "tests/engine/queue/queue_fixture.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::engine;
using namespace heddle::test;

namespace {

// What none of these tests lasts for.
constexpr OthersWait kLong{1e3, std::chrono::hours(1)};

struct OneJob {
  TemporaryFolder folder;
  std::int64_t time = 1000;
  JobQueue queue;
  std::atomic<bool> is_ending{false};

  OneJob() : queue(folder / "queue.db", options()) {}
  JobQueueOptions options() {
    JobQueueOptions o;
    o.clock = [this] { return time; };
    return o;
  }
  Job submit(const std::string& id) {
    queue.submit({job_of(id)});
    return *queue.claim({});
  }
  // The queue learns that such jobs take ten seconds.
  void learn() {
    const Job job = submit("before");
    time += 10'000;
    queue.finish(claim_of(job), {JobState::done, "", "", 10});
  }
  // Whether it was among many when the wait was over. `meanwhile` runs beside the wait.
  template <class Meanwhile>
  bool waits_until(const Job& job, Meanwhile&& meanwhile) {
    std::promise<void> begins;
    auto waited = std::async(std::launch::async, [&] {
      begins.set_value();
      wait_for_others(queue, job, 2, is_ending, kLong);
      return is_among_many(queue, 2);
    });
    begins.get_future().wait();
    meanwhile();
    return waited.get();
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(other_jobs, OneJob)

BOOST_AUTO_TEST_CASE(a_long_job_waits_until_another_comes) {
  learn();
  const Job job = submit("one");
  BOOST_TEST(!is_among_many(queue, 2));
  BOOST_TEST(waits_until(job, [&] { queue.submit({job_of("two")}); }));
}

BOOST_AUTO_TEST_CASE(nobody_waits_in_vain) {
  const Job unknown = submit("one");
  wait_for_others(queue, unknown, 2, is_ending, kLong);  // nobody knows how long it takes
  queue.finish(claim_of(unknown), {JobState::done, "", "", 10});
  time += 10'000;
  learn();
  const Job job = submit("two");
  wait_for_others(queue, job, 1, is_ending, kLong);  // it has one device in any case
  wait_for_others(queue, job, 2, is_ending, {0.02, std::chrono::milliseconds(1)});
  BOOST_TEST(!waits_until(job, [&] {
    is_ending = true;
    queue.wake();
  }));
}

BOOST_AUTO_TEST_SUITE_END()
