// heddle, the program. Everything it does is in engine/cli, over the facade <heddle/engine.hpp>.
#include "engine/cli/interrupt.h"
#include "engine/cli/program.h"

#if defined(__GLIBC__) && !defined(HEDDLE_ADDRESS_SANITIZER) && !defined(HEDDLE_THREAD_SANITIZER)
// Before the constructors of libraries, some of which take their time. Sanitizers want to be made
// first.
[[gnu::used, gnu::section(".preinit_array")]] static void (*const first_of_all)() = [] {
  heddle::cli::handle_signals();
};
#endif

int main(int argc, char** argv) {
  heddle::cli::handle_signals();
#if !defined(HEDDLE_ADDRESS_SANITIZER) && !defined(HEDDLE_THREAD_SANITIZER)
  heddle::cli::end_when_done();  // sanitizers look at what is left
#endif
  return heddle::cli::run_program({argv + (argc > 0 ? 1 : 0), argv + argc});
}
