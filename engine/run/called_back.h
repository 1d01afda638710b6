// A thread of a run that is inside of its observer: whatever that waits for, the run's own nodes go
// no further meanwhile, and nobody else should wait for them.
#pragma once

#include <functional>

namespace heddle::engine {

class CalledBack {
 public:
  // As long as it lives. `about_to_wait` may be empty, and outlives it.
  explicit CalledBack(const std::function<void()>& about_to_wait) : outer_(innermost_) {
    innermost_ = &about_to_wait;
  }
  ~CalledBack() { innermost_ = outer_; }
  CalledBack(const CalledBack&) = delete;

  // To be called by whoever is about to wait for another run.
  static void about_to_wait() {
    if (innermost_ != nullptr && *innermost_) (*innermost_)();
  }

 private:
  const std::function<void()>* const outer_;
  static inline thread_local const std::function<void()>* innermost_ = nullptr;
};

}  // namespace heddle::engine
