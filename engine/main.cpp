// heddle, the program. Everything it does is in engine/cli, over the facade <heddle/engine.hpp>.
#include <fcntl.h>

#include <cerrno>

#include "engine/cli/crash_report.h"
#include "engine/cli/interrupt.h"
#include "engine/cli/program.h"

#if defined(__GLIBC__) && !defined(HEDDLE_ADDRESS_SANITIZER) && !defined(HEDDLE_THREAD_SANITIZER)
// Before the constructors of libraries, some of which take their time. Sanitizers want to be made
// first.
[[gnu::used, gnu::section(".preinit_array")]] static void (*const first_of_all)() = [] {
  heddle::cli::handle_signals();
};
#endif

// Whoever starts the program may have closed input, output or errors. No file or socket gets their
// numbers: what is told would be written into it.
static void fill_standard_descriptors() {
  for (int number = 0; number <= 2; ++number)
    if (::fcntl(number, F_GETFD) < 0 && errno == EBADF) (void)::open("/dev/null", O_RDWR);
}

int main(int argc, char** argv) {
  fill_standard_descriptors();
  heddle::cli::handle_signals();
  heddle::cli::report_crashes();
#if !defined(HEDDLE_ADDRESS_SANITIZER) && !defined(HEDDLE_THREAD_SANITIZER)
  heddle::cli::end_when_done();  // sanitizers look at what is left
#endif
  return heddle::cli::run_program({argv + (argc > 0 ? 1 : 0), argv + argc});
}
