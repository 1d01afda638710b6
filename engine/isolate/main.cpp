// heddle_worker: runs the nodes of one plugin for an engine in another process, which starts it.
#include <iostream>

#include "engine/base/error.h"
#include "engine/isolate/worker.h"

#if defined(HEDDLE_ADDRESS_SANITIZER) || defined(HEDDLE_THREAD_SANITIZER)
// A crash is to end the process by its signal, as elsewhere: the engine tells it. A worker ends by
// _exit() while threads of the plugin may run, so that nobody joins those that have ended.
extern "C" {
const char* __asan_default_options() {
  return "handle_segv=0:handle_sigbus=0:handle_abort=0:handle_sigill=0:handle_sigfpe=0:"
         "detect_leaks=0";
}
const char* __tsan_default_options() {
  return "handle_segv=0:handle_sigbus=0:handle_abort=0:handle_sigill=0:handle_sigfpe=0:"
         "report_thread_leaks=0";
}
}
#endif

int main(int argc, char** argv) {
  try {
    return heddle::engine::run_worker(
        heddle::engine::WorkerSettings::read({argv + (argc > 0 ? 1 : 0), argv + argc}));
  } catch (const heddle::engine::Error& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
