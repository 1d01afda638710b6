// What tests of signals need: a library that sends its own process the signal HEDDLE_TEST_SIGNAL
// while it is loaded, as a plugin or by LD_PRELOAD, and nodes that do not stop when they are asked.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <heddle/node.hpp>

using heddle::Context;
using heddle::Input;
using heddle::Output;

namespace {

[[gnu::constructor]] void send_signal() {
  if (const char* number = std::getenv("HEDDLE_TEST_SIGNAL")) ::raise(std::atoi(number));
}

// Sleeps, whoever wants it to stop.
struct Deaf {
  static constexpr heddle::Info info{"test.deaf", 1, "Deaf", "test", "", HEDDLE_NODE_IMPURE};
  static constexpr Input<std::int64_t> seconds{"seconds", {.number = 60}};
  static constexpr Output<std::int64_t> out{"out"};
  static constexpr auto ports = heddle::ports(seconds, out);
  void execute(Context& ctx) {
    ctx.progress(0.5, "deaf");
    for (auto left = unsigned(ctx[seconds]); left > 0;) left = ::sleep(left);
    ctx[out] = std::int64_t{1};
  }
};

}  // namespace

HEDDLE_PLUGIN("org.heddle.tests.signals", "1.0.0", Deaf)
