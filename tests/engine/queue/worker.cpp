// A process that works on a queue until it is killed, for kill_test.cpp: submits, claims, runs,
// saves, cancels, and writes down what it was promised, a line each, only when the call has come
// back.
//
//   queue_worker QUEUE LOG ROUND JOBS        0 JOBS: only work off what is there, then end
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/queue/job_queue.h"

using namespace heddle::engine;

namespace {

class Log {
 public:
  explicit Log(const char* file) : file_(::open(file, O_WRONLY | O_CREAT | O_APPEND, 0600)) {}
  // One write: whole, or not there.
  void tell(std::string_view what, std::string_view id) const {
    const std::string line = cat(what, " ", id, "\n");
    if (::write(file_, line.data(), line.size()) < 0) std::_Exit(3);
  }

 private:
  const int file_;
};

void work(JobQueue& queue, const Log& log, std::stop_token stop) {
  while (const auto job = queue.wait_and_claim(stop)) {
    const JobClaim claim{job->id, job->generation};
    log.tell("claimed", job->id);
    if (queue.is_cancel_wanted(claim)) {
      if (queue.finish(claim, {JobState::cancelled, "", ""})) log.tell("cancelled", job->id);
      continue;
    }
    if (queue.finish(claim, {JobState::done, cat("\"", job->id, "\""), "{}"}))
      log.tell("done", job->id);
  }
}

int run(const char* file, const Log& log, const std::string& round, int count) {
  JobQueueOptions options;
  options.history_limit = 1'000'000;
  JobQueue queue(file, options);
  std::stop_source stop;
  std::vector<std::jthread> workers;
  for (int i = 0; i < 3; ++i) workers.emplace_back([&] { work(queue, log, stop.get_token()); });
  for (int i = 0; i < count; ++i) {
    NewJob job;
    job.id = cat(round, ".", i);
    log.tell("offered", job.id);
    queue.submit({job});
    log.tell("accepted", job.id);
    if (i % 5 == 4) {
      const std::string id = cat(round, ".", i - 1);
      for (const std::string& ended : queue.cancel({.ids = {id}}).ended)
        log.tell("cancelled", ended);
    }
  }
  for (JobCounts left = queue.counts(); left.pending + left.running > 0; left = queue.counts())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  stop.request_stop();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  try {
    return run(argv[1], Log(argv[2]), argv[3], std::atoi(argv[4]));
  } catch (const Error& error) {
    std::cerr << error.full() << "\n";
    return 1;
  }
}
