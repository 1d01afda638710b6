// Whether a job has the devices for itself, or has to leave some to others.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>

#include "engine/queue/job_queue.h"

namespace heddle::engine {

// Fewer jobs than devices are faster when each is divided over several devices. From there on each
// keeps to few: jobs that are divided over the same devices take turns, which takes longer than to
// run side by side, even with streamed weights.
bool is_among_many(const JobQueue& queue, std::size_t devices);

// For others that a job waits for before it is given several devices: this share of what such jobs
// have taken, and so long at most.
struct OthersWait {
  double share = 0.02;
  std::chrono::milliseconds most{50};
};

// A client submits several jobs one after another: the first of them would be given all devices,
// and the others would find their models in parts there. Returns as soon as it is among many, when
// the time is over, or with the next change of the queue once `is_ending`.
void wait_for_others(JobQueue& queue, const Job& job, std::size_t devices,
                     const std::atomic<bool>& is_ending, const OthersWait& wait = {});

}  // namespace heddle::engine
