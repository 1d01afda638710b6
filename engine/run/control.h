// What the owner of a run tells it while it runs: stop, wait, go on, write. One for each run: a run
// that fails cancels its own control, so that all of its nodes stop. Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "engine/base/guarded.h"
#include "engine/resources/run_work.h"

namespace heddle::engine {

// Wakes a thread that waits for one of several things, and looks for itself which it was. Any
// thread.
class WakeUp {
 public:
  void notify();
  std::uint64_t count() const;  // of notifications so far
  // Until there are more than `seen`, or the time is up.
  void wait_beyond(std::uint64_t seen, std::chrono::milliseconds time);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t count_ = 0;  // mutex_
};

class RunControl {
 public:
  // For good; wakes whoever waits because of a pause, or for a turn to write. What is enqueued on
  // devices is given up.
  void cancel();
  // The same, but for what is enqueued: what the run has made may be of use to others.
  void stop();
  // After a run that has failed: everything as before it began, so that it can be carried out once
  // more. False: its owner has cancelled it. REQUIRES: nothing of it is executing.
  bool rearm();
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }

  // Called at the end of cancel(), on its thread, until there is another or none: for whoever waits
  // for what this object does not know. Not to be set with a lock that it takes.
  void wake_by(std::function<void()> wake);

  // What the run has on devices, as far as nobody but the run wants it.
  const std::shared_ptr<RunWork>& work() const { return work_; }

  // From now on no node and no step of a session begins; what has begun goes on to its end.
  void pause();
  void resume();
  bool paused() const { return paused_.load(std::memory_order_acquire); }

  // A pause that gives back what the run holds: execute() keeps the state of what has begun, at the
  // next boundary between two steps, or lets it end, and comes back (RunResult::is_suspended).
  void pause_and_release();
  // The same without the pause, for a run that needs the devices more.
  void preempt();
  bool releases() const {
    return paused_release_.load(std::memory_order_acquire) ||
           preempted_.load(std::memory_order_acquire);
  }
  // From now on, until rearm(), every pause gives back what the run holds, and so does the one that
  // it is in: a device that it has is being drained. False: pauses are as they were called.
  void release_in_pauses(bool releases);
  // Before the run is executed: it may have been resumed since it was told to release.
  void begin();

  // Notified of every cancel, pause, preemption and resume. Others may keep it for longer than the
  // run lives.
  const std::shared_ptr<WakeUp>& wake_up() const { return wake_up_; }

  // To be called between two steps of work, without locks: comes back at once when the run is not
  // paused, else when it is resumed or cancelled, or has to release what it holds. Whoever calls it
  // asks for cancelled() and releases() next.
  void wait_while_paused() const {
    if (paused()) wait();
  }

  // From now on whoever is about to write files waits for its turn; until allow_writing().
  void hold_writing();
  void allow_writing();
  bool may_write() const { return may_write_.load(std::memory_order_acquire); }
  // Comes back when files may be written, or when the run is cancelled or releases what it holds:
  // whoever calls it asks for these next.
  void wait_to_write();
  // Whoever calls wait_to_write() says so first. From then on the run counts as one that has
  // computed what it had to.
  void set_has_computed() { has_computed_.store(true, std::memory_order_release); }
  bool has_computed() const { return has_computed_.load(std::memory_order_acquire); }

 private:
  void wait() const;
  void set(std::atomic<bool>& what, bool value);
  void pause(bool releases);
  void wake_executor();

  // Changed with the mutex held, so that nobody who goes to sleep misses it; read without.
  std::atomic<bool> cancelled_{false}, paused_{false}, may_write_{true}, has_computed_{false};
  std::atomic<bool> paused_release_{false}, preempted_{false};
  bool owner_cancelled_ = false;  // mutex_
  bool pauses_release_ = false;   // mutex_
  // Changed by rearm() alone, with the mutex held; read by the run's own threads without.
  std::shared_ptr<RunWork> work_ = std::make_shared<RunWork>();
  const std::shared_ptr<WakeUp> wake_up_ = std::make_shared<WakeUp>();
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  Guarded<std::function<void()>> wake_;
};

}  // namespace heddle::engine
