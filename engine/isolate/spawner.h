// Starts worker processes and tells how they ended. The system ends a worker with the thread that
// has started it (PR_SET_PDEATHSIG), so one thread starts all of them and lives as long as this.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/guarded.h"

namespace heddle::engine {

class Spawner {
 public:
  Spawner();
  ~Spawner();  // REQUIRES: all workers have ended
  Spawner(const Spawner&) = delete;

  // Any thread. `control`: the worker's end of its control channel, which stays the caller's.
  // Throws io for what the system refuses.
  pid_t start(const std::filesystem::path& program, const std::vector<std::string>& arguments,
              int control);

 private:
  struct Request {
    const std::filesystem::path* program;
    const std::vector<std::string>* arguments;
    int control;
    std::promise<pid_t> started;
  };
  struct Requests {
    std::deque<Request*> waiting;
    bool is_over = false;
  };
  void serve();

  Guarded<Requests> requests_;
  std::condition_variable has_request_;
  std::jthread thread_;
};

// The program of workers: beside the engine's library, or beside the program, or above its folder,
// as in a build. Throws not_found that names where it was looked for.
std::filesystem::path worker_program();

// Whether it has ended; end_process() still tells how.
bool has_ended(pid_t process);
// How a process ended: "was ended by signal 11 (SIGSEGV)", "ended with exit code 3". Waits a little
// for it, then kills it. Once for a process.
std::string end_process(pid_t process);
// The same of one that is known to hang: kills it at once.
void kill_process(pid_t process);

}  // namespace heddle::engine
