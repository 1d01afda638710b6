// Ctrl-C and SIGTERM. The handler only counts and writes a byte to a pipe; a thread of its own
// reads it and cancels the runs, because cancelling takes locks. The second signal ends the program
// at once, whatever that thread is doing. One object at a time, made before other threads; methods
// may be called by any thread.
#pragma once

#include <functional>
#include <heddle/engine.hpp>
#include <thread>
#include <vector>

#include "engine/base/guarded.h"

namespace heddle::cli {

inline constexpr int kExitInterrupted = 130;

class Interrupt {
 public:
  // `notice` tells the user that the runs are being stopped; called once, on the watching thread.
  explicit Interrupt(std::function<void()> notice);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;

  // Until now a signal ends the program at once, because there is nothing to clean up; from now on
  // it cancels all runs that are watched, and those that are watched later as soon as they are.
  void before_runs();
  void watch(Run run);
  void forget(std::uint64_t run);  // Run::id()

  bool came() const;

 private:
  void listen();

  struct State {
    bool has_runs = false;
    std::vector<Run> runs;
  };
  core::Guarded<State> state_;
  std::function<void()> notice_;
  int pipe_[2] = {-1, -1};
  std::thread thread_;
};

}  // namespace heddle::cli
