#include "engine/run/control.h"

namespace heddle::core {

void RunControl::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_.store(true, std::memory_order_release);
  changed_.notify_all();
}

void RunControl::pause() {
  const std::lock_guard lock(mutex_);
  paused_.store(true, std::memory_order_release);
}

void RunControl::resume() {
  const std::lock_guard lock(mutex_);
  paused_.store(false, std::memory_order_release);
  changed_.notify_all();
}

void RunControl::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !paused() || cancelled(); });
}

}  // namespace heddle::core
