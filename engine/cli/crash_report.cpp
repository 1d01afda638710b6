#include "engine/cli/crash_report.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <initializer_list>

#include "engine/base/running_node.h"

namespace heddle::cli {

namespace {

// What a handler of a signal may do: no memory, no locks. Longer texts are cut off.
class Line {
 public:
  Line& operator<<(const char* text) noexcept {
    while (*text != '\0' && size_ < sizeof text_) text_[size_++] = *text++;
    return *this;
  }
  void write() noexcept {
    std::size_t written = 0;
    while (written < size_) {
      const ssize_t count = ::write(STDERR_FILENO, text_ + written, size_ - written);
      if (count <= 0) return;
      written += std::size_t(count);
    }
  }

 private:
  char text_[600];
  std::size_t size_ = 0;
};

const char* name_of_signal(int number) noexcept {
  switch (number) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGABRT:
      return "SIGABRT";
    case SIGFPE:
      return "SIGFPE";
    default:
      return "SIGILL";
  }
}

void tell(const char* what, const char* how) noexcept {
  const engine::RunningNode& running = engine::running_node();
  if (running.id == nullptr) return;
  Line line;
  line << "heddle: error: node '" << running.id << "' (" << running.type << ") of plugin '"
       << running.plugin << "' " << what << how << ". With --isolate " << running.plugin
       << " the plugin runs in a process of its own, and only its run fails.\n";
  line.write();
}

void on_signal(int number) {
  tell("ends the program by ", name_of_signal(number));
  ::raise(number);  // SA_RESETHAND: as if nobody had handled it
}

}  // namespace

void report_crashes() noexcept {
  for (const int number : {SIGSEGV, SIGABRT, SIGFPE, SIGILL}) {
    struct sigaction before = {}, ours = {};
    if (::sigaction(number, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) continue;
    ours.sa_handler = &on_signal;
    ours.sa_flags = int(SA_RESETHAND | SA_NODEFER);
    ::sigaction(number, &ours, nullptr);
  }
  std::atexit([] { tell("has called exit()", ""); });
}

}  // namespace heddle::cli
