// What is told of opened devices to whoever places work on them.
#include <boost/test/unit_test.hpp>

#include "engine/plugin/devices.h"
#include "tests/support/engine_fixture.h"

using namespace heddle;
using core::DeviceFacts;
using core::LinkFacts;

namespace {

struct Opened {
  core::LoadedPlugins plugins =
      core::load_plugins({HEDDLE_PLUGINS_DIR "/cpu.so", HEDDLE_FAKE_DEVICE_DIR});
  std::vector<core::RunDevice> devices;
  core::Topology topology;

  explicit Opened(std::vector<std::string> names,
                  const std::map<std::string, std::uint64_t>& budgets = {}) {
    core::DeviceSelection selection;
    selection.names = std::move(names);
    selection.budgets = budgets;
    devices = core::open_devices(plugins, selection);
    topology = core::topology_of(devices, budgets);
  }
  std::uint64_t free_on(std::size_t device) const { return topology.devices[device].memory_free; }
  std::uint64_t free_when_opened(std::size_t device) const {
    return devices[device].state->device().opening_info().memory_free;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(devices)

BOOST_AUTO_TEST_CASE(devices_in_host_memory_divide_what_is_free_there) {
  const Opened alone({"cpu:0"});
  BOOST_TEST(alone.free_on(0) == alone.free_when_opened(0));
  const Opened three({"cpu:0", "fake:0", "cpu:1", "cpu:2"});
  const std::uint64_t shares = three.free_on(0) + three.free_on(2) + three.free_on(3);
  BOOST_TEST(shares <= three.free_when_opened(0));
  BOOST_TEST(double(shares) == double(three.free_when_opened(0)),
             boost::test_tools::tolerance(0.01));
  BOOST_TEST(three.free_on(0) > 0u);
  BOOST_TEST(three.free_on(1) == three.free_when_opened(1));  // memory of its own
}

BOOST_AUTO_TEST_CASE(a_budget_in_host_memory_leaves_the_rest_to_the_others) {
  constexpr std::uint64_t kBudget = 64 << 20;
  const Opened two({"cpu:0", "cpu:1"}, {{"cpu:1", kBudget}});
  BOOST_TEST(core::room_of(two.topology.devices[1]) == kBudget);
  BOOST_TEST(double(two.free_on(0)) == double(two.free_when_opened(0) - kBudget),
             boost::test_tools::tolerance(0.01));
  // More than there is: nothing is left, and nothing wraps around.
  const Opened greedy({"cpu:0", "cpu:1"}, {{"cpu:1", std::uint64_t{1} << 60}});
  BOOST_TEST(greedy.free_on(0) == 0u);
}

BOOST_AUTO_TEST_CASE(a_device_reaches_one_that_is_host_memory_without_a_stop) {
  const Opened both({"cpu:0", "fake:0", "cpu:1"});
  const LinkFacts host = both.topology.link(1, core::kHostSide);
  BOOST_TEST((host.kind == LinkFacts::Kind::direct));
  for (const LinkFacts& link : {both.topology.link(0, 1), both.topology.link(1, 0)}) {
    BOOST_TEST((link.kind == LinkFacts::Kind::direct));
    BOOST_TEST(link.bytes_per_second == host.bytes_per_second);
  }
  BOOST_TEST((both.topology.link(0, 2).kind == LinkFacts::Kind::same));
}

BOOST_AUTO_TEST_SUITE_END()
