// A worker: a process that loads one plugin and runs its nodes for an engine in another process.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace heddle::engine {

// Where the engine's end of the control channel is in a worker.
inline constexpr int kControlDescriptor = 3;

// What the engine tells a worker when it starts it, as arguments.
struct WorkerSettings {
  std::string plugin;              // path
  int log_level = 1;               // of engine/base/log.h
  std::uint64_t memory_bytes = 0;  // see heddle::Isolation
  bool sandbox = false;
  pid_t engine = 0;  // the process that starts it
  // The program, and where another runs it what stands before and behind the arguments of it.
  std::string program;
  std::vector<std::string> before, behind;

  std::vector<std::string> arguments() const;
  // Throws invalid_argument for others than arguments() gives.
  static WorkerSettings read(const std::vector<std::string>& arguments);
};

// Does not return before the engine is gone or the control channel is closed; the result is the
// process's exit code. Once in a process.
int run_worker(const WorkerSettings& settings);

}  // namespace heddle::engine
