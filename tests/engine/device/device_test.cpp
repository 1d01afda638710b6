// A device's own checks.
#include "engine/device/device.h"

#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>

#include "engine/base/verify.h"
#include "tests/fake_device/fake_fixture.h"

using namespace heddle;

BOOST_AUTO_TEST_SUITE(device)

// Copies 16 bytes of fake:0 by a stream of the device of that index, in a process of its own. Its
// status, as wait() gives it.
static int copy_by_stream_of(std::size_t index) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    const test::Fakes fakes("{}", 2);
    const test::DeviceBuffer buffer(fakes.device(0), 4);
    engine::Stream stream(fakes.device(index));
    float back[4] = {};
    try {
      fakes.device(0).copy(stream, nullptr, back, &fakes.device(0), buffer.data(), sizeof back);
      stream.synchronize();
    } catch (const engine::Error&) {
      _exit(3);
    }
    _exit(0);
  }
  int status = 0;
  BOOST_REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

BOOST_AUTO_TEST_CASE(work_on_another_device_s_stream_ends_a_debug_build) {
  const int right = copy_by_stream_of(0);
  BOOST_TEST((WIFEXITED(right) && WEXITSTATUS(right) == 0));
  const int wrong = copy_by_stream_of(1);
  if (engine::kVerify)
    BOOST_TEST((WIFSIGNALED(wrong) && WTERMSIG(wrong) == SIGABRT));
  else
    BOOST_TEST(WIFEXITED(wrong));
}

BOOST_AUTO_TEST_SUITE_END()
