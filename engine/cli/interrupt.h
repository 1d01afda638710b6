// Ctrl-C and SIGTERM. The handler only counts and writes a byte to a pipe; a thread of its own
// reads it and cancels the run, because cancelling takes locks. The second signal ends the program
// at once, whatever that thread is doing. One object at a time, made before other threads; methods
// may be called by any thread.
#pragma once

#include <functional>
#include <heddle/engine.hpp>
#include <optional>
#include <thread>

#include "engine/base/guarded.h"

namespace heddle::cli {

inline constexpr int kExitInterrupted = 130;

class Interrupt {
 public:
  // `notice` tells the user that the run is being stopped; called once, on the watching thread.
  explicit Interrupt(std::function<void()> notice);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;

  // From now on a signal cancels `run`. Without a run a signal ends the program at once: there is
  // nothing to clean up.
  void watch(Run run);
  void forget();

  bool came() const;

 private:
  void listen();

  struct State {
    std::optional<Run> run;
  };
  core::Guarded<State> state_;
  std::function<void()> notice_;
  int pipe_[2] = {-1, -1};
  std::thread thread_;
};

}  // namespace heddle::cli
