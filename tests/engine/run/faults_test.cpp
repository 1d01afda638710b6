// Devices that fail while a divided model is set up, stepped and copied: the run says which device
// and why, and the next one succeeds with the memory that it began with.
#include <boost/test/unit_test.hpp>

#include "engine/base/error.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/layers_model.h"

using namespace heddle;
using engine::CallSpec;
using engine::Model;
using engine::Node;

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
    } catch (const engine::Error& error) {
      return error.full();
    }
  }
  // The run has failed on a device with this cause, and nothing is left of it.
  void check_after(const std::string& reason, const std::string& device, const std::string& cause) {
    BOOST_TEST(reason.find(device) != std::string::npos, reason);
    BOOST_TEST(reason.find(cause) != std::string::npos, reason);
    control->revive(0);
    control->revive(1);
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
      check_after(failure(), engine::cat("fake:", device),
                  "this launch fails because a test asked for it");
    }
  }
}

BOOST_AUTO_TEST_CASE(a_device_that_dies_before_a_run_or_while_its_model_is_opened) {
  for (std::uint32_t device : {0u, 1u}) {
    const std::string name = engine::cat("fake:", device);
    control->kill(device);
    check_after(failure(), name, "the device has died");
    std::string reason;
    try {
      layers.runs.run(layers.flow(3, 2), "loop",
                      [&](const Node&, std::uint32_t, const Model& model, const CallSpec&) {
                        control->kill(device);
                        return test::layers(model, {0, 1}, {1, 1});
                      });
    } catch (const engine::Error& error) {
      reason = error.full();
    }
    BOOST_TEST(reason.find("node 'loop'") != std::string::npos, reason);
    check_after(reason, name, "the device has died");
  }
}

BOOST_AUTO_TEST_CASE(memory_that_others_have_taken_and_given_back) {
  for (std::uint32_t device : {0u, 1u}) {
    layers.used();
    layers.state(device).pool().trim();
    control->set_foreign_bytes(device, std::uint64_t{16} << 30);
    const std::string reason = failure();
    control->set_foreign_bytes(device, 0);
    BOOST_TEST(reason.find("node '") != std::string::npos, reason);
    check_after(reason, engine::cat("fake:", device), "out of memory");
  }
}

BOOST_AUTO_TEST_SUITE_END()
