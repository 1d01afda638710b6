// Ctrl-C and SIGTERM. Where nothing is under way that wants to be put in order, a signal ends the
// program at once; while there are runs it cancels them, and the program ends in the common way as
// soon as they have stopped. Whatever does not stop within the grace is left as it is: files become
// visible under their names when they are whole, so nothing half is left behind. A second signal
// ends the program at once.
//
// The handler counts, sets a timer and writes a byte to a pipe; a thread reads it and cancels the
// runs, because cancelling takes locks. The timer needs no thread, and so works whatever all of
// them are waiting for.
#pragma once

#include <chrono>
#include <functional>
#include <heddle/engine.hpp>
#include <thread>
#include <vector>

#include "engine/base/guarded.h"

namespace heddle::cli {

inline constexpr int kExitInterrupted = 130;
inline constexpr std::chrono::milliseconds kGrace{450};

// From now on a signal ends the program with kExitInterrupted. As early as possible; again is the
// same as once. Async-signal-safe, and needs nothing that constructors make.
void handle_signals() noexcept;

// All that was asked for has been done and written: from now on a signal ends the program with this
// code. Any thread.
void set_exit_code(int code) noexcept;

// For main(): the program may end when all has been done and written, instead of giving back memory
// piece by piece that goes with the process anyhow. A test that runs the program's functions in its
// own process does not ask for it.
void end_when_done() noexcept;

// Ends the program with the code of set_exit_code() where that was asked for.
void done() noexcept;

// One object at a time, made before other threads; methods may be called by any thread.
class Interrupt {
 public:
  // `notice` tells the user that the runs are being stopped; called once, on the watching thread,
  // and may stop what is no Run. The program ends so long after the signal, whatever goes on.
  explicit Interrupt(std::function<void()> notice, std::chrono::milliseconds grace = kGrace);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;

  // From now on a signal cancels all runs that are watched, and those that are watched later as
  // soon as they are.
  void before_runs();
  void watch(Run run);
  void forget(std::uint64_t run);  // Run::id()

  bool came() const;

 private:
  void listen();

  engine::Guarded<std::vector<Run>> runs_;
  std::function<void()> notice_;
  int pipe_[2] = {-1, -1};
  std::thread thread_;
};

}  // namespace heddle::cli
