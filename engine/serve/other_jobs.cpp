#include "engine/serve/other_jobs.h"

#include <algorithm>

namespace heddle::engine {

bool is_among_many(const JobQueue& queue, std::size_t devices) {
  const JobCounts counts = queue.counts();
  const std::int64_t jobs = counts.pending + counts.running;
  return jobs > 1 && std::uint64_t(jobs) >= devices;
}

void wait_for_others(JobQueue& queue, const Job& job, std::size_t devices,
                     const std::atomic<bool>& is_ending, const OthersWait& wait) {
  using std::chrono::milliseconds, std::chrono::steady_clock;
  if (devices < 2) return;
  const double expected_ms = 1000 * queue.expected_seconds(job).value_or(0) * wait.share;
  const auto end = steady_clock::now() +
                   std::min(wait.most, milliseconds(std::int64_t(std::min(expected_ms, 1e9))));
  for (;;) {
    const std::uint64_t seen = queue.changes();  // first: who ends the server wakes whoever waits
    if (is_ending) return;
    const auto left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now());
    if (left.count() < 1 || is_among_many(queue, devices)) return;
    queue.wait_for_change(seen, {}, left);
  }
}

}  // namespace heddle::engine
