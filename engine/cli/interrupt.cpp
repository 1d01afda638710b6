#include "engine/cli/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <exception>

#include "engine/base/error.h"
#include "engine/base/temporary_file.h"
#include "engine/base/thread.h"

namespace heddle::cli {
namespace {

// A handler has no argument of ours, so what it touches is global; all of it is lock-free, and is
// there before any constructor has run.
constinit std::atomic<int> signal_count{0};
constinit std::atomic<int> exit_code{kExitInterrupted};
constinit std::atomic<bool> has_runs{false};
constinit std::atomic<bool> ends_when_done{false};
constinit std::atomic<int> signal_pipe{-1};
constinit std::atomic<timer_t> grace_timer{};
constinit std::atomic<std::int64_t> grace_ms{kGrace.count()};
static_assert(std::atomic<int>::is_always_lock_free);
static_assert(std::atomic<timer_t>::is_always_lock_free);
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

constexpr char kSignal = 's', kQuit = 'q';

[[noreturn]] void end_program() {
  engine::unlink_temporary_files();
  ::_exit(exit_code.load());
}

void on_interrupt(int) {
  const int saved = errno;
  if (!has_runs.load() || signal_count.fetch_add(1) > 0) end_program();
  itimerspec once{};
  once.it_value.tv_sec = grace_ms.load() / 1000;
  once.it_value.tv_nsec = grace_ms.load() % 1000 * 1'000'000;
  ::timer_settime(grace_timer.load(), 0, &once, nullptr);
  [[maybe_unused]] const ssize_t ignored = ::write(signal_pipe.load(), &kSignal, 1);
  errno = saved;
}

void on_timer(int) { end_program(); }

void set_handler(int number, void (*handler)(int)) noexcept {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(number, &action, nullptr);
}

}  // namespace

void handle_signals() noexcept {
  for (const int number : {SIGINT, SIGTERM}) set_handler(number, &on_interrupt);
}

void set_exit_code(int code) noexcept { exit_code.store(code); }

void end_when_done() noexcept { ends_when_done = true; }

void done() noexcept {
  if (!ends_when_done) return;
  std::fflush(nullptr);
  end_program();
}

Interrupt::Interrupt(std::function<void()> notice, std::chrono::milliseconds grace)
    : notice_(std::move(notice)) {
  grace_ms = grace.count();
  if (::pipe2(pipe_, O_CLOEXEC) != 0) throw engine::system_error("pipe", errno);
  signal_pipe = pipe_[1];
  set_handler(SIGALRM, &on_timer);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGALRM;
  timer_t timer{};
  if (::timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) {
    const int failure = errno;
    for (const int end : pipe_) ::close(end);
    throw engine::system_error("timer_create", failure);
  }
  grace_timer = timer;
  thread_ =
      engine::start_thread<std::thread>("the thread that waits for signals", [this] { listen(); });
}

// The timer stays: what is left to do after a signal has to be done in time, too.
Interrupt::~Interrupt() {
  has_runs = false;
  [[maybe_unused]] const ssize_t ignored = ::write(pipe_[1], &kQuit, 1);
  thread_.join();
  for (const int end : pipe_) ::close(end);
}

void Interrupt::before_runs() { has_runs = true; }

void Interrupt::watch(Run run) {
  runs_.lock()->push_back(run);
  // A signal that came before is seen here, one that comes after sees the run.
  if (came()) run.cancel();
}

void Interrupt::forget(std::uint64_t run) {
  std::vector<Run> forgotten;  // destroyed outside of the lock: a run's end waits for threads
  auto runs = runs_.lock();
  const auto at = std::ranges::find(*runs, run, &Run::id);
  if (at == runs->end()) return;
  forgotten.push_back(std::move(*at));
  runs->erase(at);
}

bool Interrupt::came() const { return signal_count.load() > 0; }

void Interrupt::listen() {
  char byte = 0;
  while (true) {
    const ssize_t count = ::read(pipe_[0], &byte, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count != 1 || byte == kQuit) return;
    try {
      const std::vector<Run> runs = *runs_.lock();
      for (Run run : runs) run.cancel();
      notice_();  // last: whoever reads stderr may be slow
    } catch (const std::exception&) {
      // There is no memory to stop them in order: the timer ends the program.
    }
  }
}

}  // namespace heddle::cli
