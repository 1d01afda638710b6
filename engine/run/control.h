// What the owner of a run tells it while it runs: stop, wait, go on, write. One for each run: a run
// that fails cancels its own control, so that all of its nodes stop. Any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "engine/resources/run_work.h"

namespace heddle::engine {

class RunControl {
 public:
  // For good; wakes whoever waits because of a pause, or for a turn to write. What is enqueued on
  // devices is given up.
  void cancel();
  // The same, but for what is enqueued: what the run has made may be of use to others.
  void stop();
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }

  // What the run has on devices, as far as nobody but the run wants it.
  const std::shared_ptr<RunWork>& work() const { return work_; }

  // From now on no node and no step of a session begins; what has begun goes on to its end.
  void pause();
  void resume();
  bool paused() const { return paused_.load(std::memory_order_acquire); }

  // To be called between two steps of work, without locks: comes back at once when the run is not
  // paused, else when it is resumed or cancelled. Whoever calls it asks for cancelled() next.
  void wait_while_paused() const {
    if (paused()) wait();
  }

  // From now on whoever is about to write files waits for its turn; until allow_writing().
  void hold_writing();
  void allow_writing();
  bool may_write() const { return may_write_.load(std::memory_order_acquire); }
  // Comes back when files may be written, or when the run is cancelled: whoever calls it asks for
  // cancelled() next.
  void wait_to_write();
  // Whoever calls wait_to_write() says so first. From then on the run counts as one that has
  // computed what it had to.
  void set_has_computed() { has_computed_.store(true, std::memory_order_release); }
  bool has_computed() const { return has_computed_.load(std::memory_order_acquire); }

 private:
  void wait() const;
  void set(std::atomic<bool>& what, bool value);

  // Changed with the mutex held, so that nobody who goes to sleep misses it; read without.
  std::atomic<bool> cancelled_{false}, paused_{false}, may_write_{true}, has_computed_{false};
  const std::shared_ptr<RunWork> work_ = std::make_shared<RunWork>();
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
};

}  // namespace heddle::engine
