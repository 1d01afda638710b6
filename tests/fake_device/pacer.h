// Pacer: holds the work of a stream back, so that it takes as long by the true clock as it is told.
// Used by what carries the work out, one after another.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace heddle::fake {

class Pacer {
 public:
  // Ends when the work that has passed, this included, may be over. What a pause took too long
  // (threads wake up late, the work itself takes a while) is made up for by the next ones, so that
  // streams of many short works keep up with those of few long ones; but not what a stream was
  // idle.
  void pass(double seconds) {
    using std::chrono::steady_clock;
    constexpr std::chrono::milliseconds kMostLate{50};
    due_ =
        std::max(due_, steady_clock::now() - kMostLate) +
        std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(seconds));
    std::this_thread::sleep_until(due_);
  }

 private:
  std::chrono::steady_clock::time_point due_{};
};

}  // namespace heddle::fake
