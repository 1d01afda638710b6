#include "engine/run/control.h"

namespace heddle::engine {

void WakeUp::notify() {
  const std::lock_guard lock(mutex_);
  ++count_;
  changed_.notify_all();
}

std::uint64_t WakeUp::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

void WakeUp::wait_beyond(std::uint64_t seen, std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [&] { return count_ > seen; });
}

void RunControl::set(std::atomic<bool>& what, bool value) {
  {
    const std::lock_guard lock(mutex_);
    what.store(value, std::memory_order_release);
    changed_.notify_all();
  }
  wake_up_->notify();
}

// In this order: whoever finds that work is missing finds that the run is cancelled.
void RunControl::cancel() {
  std::shared_ptr<RunWork> work;
  {
    const std::lock_guard lock(mutex_);
    owner_cancelled_ = true;
    work = work_;
  }
  stop();
  work->give_up();
  wake_executor();
}

void RunControl::wake_executor() {
  if (const auto wake = wake_.lock(); *wake) (*wake)();
}

bool RunControl::rearm() {
  const std::lock_guard lock(mutex_);
  if (owner_cancelled_) return false;
  cancelled_.store(false, std::memory_order_release);
  has_computed_.store(false, std::memory_order_release);
  paused_release_.store(false, std::memory_order_release);
  preempted_.store(false, std::memory_order_release);
  pauses_release_ = false;
  work_ = std::make_shared<RunWork>();
  return true;
}
void RunControl::wake_by(std::function<void()> wake) { wake_.lock()->swap(wake); }
void RunControl::stop() { set(cancelled_, true); }
void RunControl::resume() { set(paused_, false); }

void RunControl::pause() { pause(false); }
void RunControl::pause_and_release() { pause(true); }

void RunControl::pause(bool releases) {
  {
    const std::lock_guard lock(mutex_);
    releases = releases || pauses_release_;
    paused_.store(true, std::memory_order_release);
    if (releases) paused_release_.store(true, std::memory_order_release);
    changed_.notify_all();
  }
  wake_up_->notify();
  if (releases) wake_executor();
}

void RunControl::release_in_pauses(bool releases) {
  {
    const std::lock_guard lock(mutex_);
    pauses_release_ = releases;
    if (!releases || !paused()) return;
    paused_release_.store(true, std::memory_order_release);
    changed_.notify_all();
  }
  wake_executor();
}

void RunControl::preempt() {
  set(preempted_, true);
  wake_executor();
}

void RunControl::begin() {
  const std::lock_guard lock(mutex_);
  if (!paused()) paused_release_.store(false, std::memory_order_release);
}
void RunControl::hold_writing() { set(may_write_, false); }
void RunControl::allow_writing() { set(may_write_, true); }

void RunControl::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !paused() || cancelled() || releases(); });
}

void RunControl::wait_to_write() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return may_write() || cancelled() || releases(); });
}

}  // namespace heddle::engine
