#include "engine/cli/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "engine/base/error.h"

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
  thread_ = std::thread([this] { listen(); });
  set_handler(&on_signal);
}

Interrupt::~Interrupt() {
  set_handler(SIG_DFL);
  [[maybe_unused]] const ssize_t ignored = ::write(pipe_[1], &kQuit, 1);
  thread_.join();
  for (const int end : pipe_) ::close(end);
}

void Interrupt::watch(Run run) {
  auto state = state_.lock();
  state->run = std::move(run);
}

void Interrupt::forget() {
  // The run is destroyed outside of the lock: its end waits for threads.
  std::optional<Run> run;
  std::swap(run, state_.lock()->run);
}

bool Interrupt::came() const { return signal_count.load() > 0; }

void Interrupt::listen() {
  char byte = 0;
  while (true) {
    const ssize_t count = ::read(pipe_[0], &byte, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count != 1 || byte == kQuit) return;
    std::optional<Run> run = state_.lock()->run;
    if (!run) std::_Exit(kExitInterrupted);
    notice_();
    run->cancel();
  }
}

}  // namespace heddle::cli
