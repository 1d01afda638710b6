#include "engine/run/control.h"

namespace heddle::engine {

void RunControl::set(std::atomic<bool>& what, bool value) {
  const std::lock_guard lock(mutex_);
  what.store(value, std::memory_order_release);
  changed_.notify_all();
}

// In this order: whoever finds that work is missing finds that the run is cancelled.
void RunControl::cancel() {
  stop();
  work_->give_up();
}
void RunControl::stop() { set(cancelled_, true); }
void RunControl::pause() { set(paused_, true); }
void RunControl::resume() { set(paused_, false); }
void RunControl::hold_writing() { set(may_write_, false); }
void RunControl::allow_writing() { set(may_write_, true); }

void RunControl::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !paused() || cancelled(); });
}

void RunControl::wait_to_write() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return may_write() || cancelled(); });
}

}  // namespace heddle::engine
