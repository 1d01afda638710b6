// Devices that fail while a divided model is set up, stepped and copied: the run says which device
// and why, and the next one succeeds with the memory that it began with.
#include <boost/test/unit_test.hpp>

#include "engine/base/error.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/layers_model.h"

using namespace heddle;
using core::CallSpec;
using core::Model;
using core::Node;

namespace {

struct Faults {
  test::FakeControl control;
  test::LayersModel layers{{"fake:0", "fake:1"}, R"({"peer": false})"};
  std::vector<std::byte> good = run();
  std::vector<std::uint64_t> before = layers.used();

  std::vector<std::byte> run() {
    return layers.runs.run(layers.flow(3, 2), "loop",
                           [](const Node&, std::uint32_t, const Model& model, const CallSpec&) {
                             return test::layers(model, {0, 1}, {1, 1});
                           });
  }
  // What the run throws, or "".
  std::string failure() {
    try {
      return run() == good ? "" : "other bytes";
    } catch (const core::Error& error) {
      return error.full();
    }
  }
  // The run has failed on a device with this cause, and nothing is left of it.
  void check_after(const std::string& reason, const std::string& device, const std::string& cause) {
    BOOST_TEST(reason.find(device) != std::string::npos, reason);
    BOOST_TEST(reason.find(cause) != std::string::npos, reason);
    control->revive(0);
    control->revive(1);
    layers.used();  // weights of a device that has come back hold nothing any more
    BOOST_TEST(failure() == "");
    BOOST_TEST(layers.used() == before, boost::test_tools::per_element());
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(faults, Faults)

BOOST_AUTO_TEST_CASE(a_copy_that_fails_anywhere_in_a_run) {
  for (std::uint32_t device : {0u, 1u})
    for (std::uint64_t nth = 1; nth <= 12; ++nth) {
      control->reset();
      control->fail_copy(device, nth);
      check_after(failure(), "fake:", "this copy fails because a test asked for it");
    }
}

BOOST_AUTO_TEST_CASE(a_launch_that_fails_anywhere_in_a_run) {
  for (std::uint32_t device : {0u, 1u}) {
    control->reset();
    run();
    const std::uint64_t launches = control->launches(device, nullptr);
    BOOST_TEST(launches > 6u);
    for (std::uint64_t nth = 1; nth <= launches; nth += 3) {
      BOOST_TEST_INFO("launch " << nth << " of " << launches);
      control->reset();
      control->fail_launch(device, nth);
      check_after(failure(), core::cat("fake:", device),
                  "this launch fails because a test asked for it");
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
