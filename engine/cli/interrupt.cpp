#include "engine/cli/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "engine/base/error.h"
#include "engine/base/thread.h"

namespace heddle::cli {
namespace {

// A handler has no argument of ours, so what it touches is global; all of it is lock-free.
std::atomic<int> signal_count{0};
std::atomic<int> signal_pipe{-1};
static_assert(std::atomic<int>::is_always_lock_free);

constexpr char kSignal = 's', kQuit = 'q';

void on_signal(int) {
  if (signal_count.fetch_add(1) > 0) ::_exit(kExitInterrupted);
  const int saved = errno;
  [[maybe_unused]] const ssize_t ignored = ::write(signal_pipe.load(), &kSignal, 1);
  errno = saved;
}

void set_handler(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  for (const int number : {SIGINT, SIGTERM}) ::sigaction(number, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt(std::function<void()> notice) : notice_(std::move(notice)) {
  if (::pipe2(pipe_, O_CLOEXEC) != 0) throw core::system_error("pipe", errno);
  signal_pipe = pipe_[1];
  thread_ =
      core::start_thread<std::thread>("the thread that waits for signals", [this] { listen(); });
  set_handler(&on_signal);
}

Interrupt::~Interrupt() {
  set_handler(SIG_DFL);
  [[maybe_unused]] const ssize_t ignored = ::write(pipe_[1], &kQuit, 1);
  thread_.join();
  for (const int end : pipe_) ::close(end);
}

void Interrupt::before_runs() { state_.lock()->has_runs = true; }

void Interrupt::watch(Run run) {
  state_.lock()->runs.push_back(run);
  // A signal that came before is seen here, one that comes after sees the run.
  if (came()) run.cancel();
}

void Interrupt::forget(std::uint64_t run) {
  std::vector<Run> forgotten;  // destroyed outside of the lock: a run's end waits for threads
  auto state = state_.lock();
  const auto at = std::ranges::find(state->runs, run, &Run::id);
  if (at == state->runs.end()) return;
  forgotten.push_back(std::move(*at));
  state->runs.erase(at);
}

bool Interrupt::came() const { return signal_count.load() > 0; }

void Interrupt::listen() {
  char byte = 0;
  while (true) {
    const ssize_t count = ::read(pipe_[0], &byte, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count != 1 || byte == kQuit) return;
    const State state = *state_.lock();
    if (!state.has_runs) std::_Exit(kExitInterrupted);
    notice_();
    for (Run run : state.runs) run.cancel();
  }
}

}  // namespace heddle::cli
