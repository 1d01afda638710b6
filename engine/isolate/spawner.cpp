#include "engine/isolate/spawner.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>

#include "engine/base/error.h"
#include "engine/base/own_folder.h"
#include "engine/base/text.h"
#include "engine/base/thread.h"
#include "engine/isolate/worker.h"

namespace heddle::engine {

namespace {

namespace fs = std::filesystem;

// Signals as they were before the engine's program changed them; a group of its own, so that a
// terminal's Ctrl-C is the engine's to answer.
class SpawnAttributes {
 public:
  SpawnAttributes() {
    ::posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    ::posix_spawn_file_actions_init(&actions);
  }
  ~SpawnAttributes() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnAttributes(const SpawnAttributes&) = delete;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
};

pid_t spawn(const fs::path& program, const std::vector<std::string>& arguments, int control) {
  SpawnAttributes spawn;
  // In this order: the socket may be number 0, in a program that has closed its input.
  ::posix_spawn_file_actions_adddup2(&spawn.actions, control, kControlDescriptor);
  ::posix_spawn_file_actions_addopen(&spawn.actions, 0, "/dev/null", O_RDONLY, 0);
  std::string name = program.string();
  std::vector<char*> texts{name.data()};
  for (const std::string& argument : arguments)
    texts.push_back(const_cast<char*>(argument.c_str()));
  texts.push_back(nullptr);
  pid_t process = 0;
  if (const int error = ::posix_spawn(&process, program.c_str(), &spawn.actions, &spawn.attributes,
                                      texts.data(), environ);
      error != 0)
    throw system_error(cat("starting ", program.string()), error);
  return process;
}

// What a worker has started is in its group, unless it hides. While the worker is not waited for,
// the number is of no other group.
void kill_group(pid_t process) { ::kill(-process, SIGKILL); }

// Of the group, what has become a child of this process, because that adopts what has lost its
// parent: the first process of a container does.
void wait_for_adopted(pid_t process) {
  for (int i = 0; i < 1000; ++i) {
    const pid_t ended = ::waitpid(-process, nullptr, WNOHANG);
    if (ended < 0 && errno != EINTR) return;  // there is none
    if (ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Waits for a process that has ended or was killed, and for the rest of its group. One that the
// system does not let go (it waits for a disk) is left to the end of this process.
// False: somebody else has waited for it, or it is left.
bool wait_for(pid_t process, int& status) {
  for (int i = 0; i < 10'000; ++i) {
    const pid_t ended = ::waitpid(process, &status, WNOHANG);
    if (ended == process) {
      wait_for_adopted(process);
      return true;
    }
    if (ended < 0 && errno != EINTR) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

std::string_view signal_name(int signal) {
  const char* const name = ::sigabbrev_np(signal);
  return name == nullptr ? "?" : name;
}

constexpr const char* kToldOthers = "ended; somebody else was told how";

std::string describe_end(int status) {
  if (WIFEXITED(status)) return cat("ended with exit code ", WEXITSTATUS(status));
  if (!WIFSIGNALED(status)) return "ended";
  const std::string told =
      cat("was ended by signal ", WTERMSIG(status), " (SIG", signal_name(WTERMSIG(status)), ")");
  return WTERMSIG(status) == SIGKILL ? told + ", as the system does where memory is out" : told;
}

}  // namespace

Spawner::Spawner() : thread_(start_thread("the thread that starts workers", [this] { serve(); })) {}

Spawner::~Spawner() {
  requests_.lock()->is_over = true;
  has_request_.notify_all();
}

void Spawner::serve() {
  for (;;) {
    Request* request = nullptr;
    {
      auto requests = requests_.lock();
      requests.wait(has_request_,
                    [](const Requests& r) { return r.is_over || !r.waiting.empty(); });
      if (requests->waiting.empty()) return;
      request = requests->waiting.front();
      requests->waiting.pop_front();
    }
    std::promise<pid_t> started = std::move(request->started);
    try {
      started.set_value(spawn(*request->program, *request->arguments, request->control));
    } catch (...) {
      started.set_exception(std::current_exception());
    }
  }
}

pid_t Spawner::start(const fs::path& program, const std::vector<std::string>& arguments,
                     int control) {
  Request request{&program, &arguments, control, {}};
  std::future<pid_t> started = request.started.get_future();
  requests_.lock()->waiting.push_back(&request);
  has_request_.notify_all();
  return started.get();
}

// In lib/heddle of the prefix whose bin/, lib/, lib64/ or lib/x86_64-linux-gnu/ we stand in; beside
// us, or above us (a test), in a build folder.
fs::path worker_program() {
  std::vector<std::string> places;
  const auto add = [&](const fs::path& place) {
    if (std::ranges::find(places, place.string()) == places.end()) places.push_back(place.string());
  };
  for (const fs::path& folder : {library_folder(), program_folder()}) {
    const fs::path above = folder.parent_path();
    const std::string name = folder.filename();
    if (name == "bin" || name.starts_with("lib")) add(above / "lib/heddle");
    if (above.filename() == "lib") add(above / "heddle");
    add(folder);
    add(above);
  }
  std::error_code error;
  for (const std::string& place : places)
    if (const fs::path program = fs::path(place) / "heddle_worker";
        fs::is_regular_file(program, error))
      return program;
  throw Error(Code::not_found, cat("the program heddle_worker, which runs isolated plugins, is not "
                                   "in ",
                                   join(places, ", "), ". Install it with heddle."));
}

bool has_ended(pid_t process) {
  siginfo_t info{};
  return ::waitid(P_PID, id_t(process), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == process;
}

std::string end_process(pid_t process) {
  using namespace std::chrono_literals;
  // Its sockets close before it is over.
  for (int i = 0; i < 5000; ++i) {
    siginfo_t info{};
    const int asked = ::waitid(P_PID, id_t(process), &info, WEXITED | WNOHANG | WNOWAIT);
    if (asked == 0 && info.si_pid == process) {
      kill_group(process);
      int status = 0;
      return wait_for(process, status) ? describe_end(status) : kToldOthers;
    }
    if (asked != 0 && errno != EINTR) return kToldOthers;
    std::this_thread::sleep_for(1ms);
  }
  kill_process(process);
  return "closed its connection, and was ended";
}

void kill_process(pid_t process) {
  // Where this process ignores SIGCHLD, the number of one that has ended may be another's by now.
  siginfo_t info{};
  if (::waitid(P_PID, id_t(process), &info, WEXITED | WNOHANG | WNOWAIT) != 0) return;
  ::kill(process, SIGKILL);
  kill_group(process);
  int status = 0;
  (void)wait_for(process, status);
}

}  // namespace heddle::engine
