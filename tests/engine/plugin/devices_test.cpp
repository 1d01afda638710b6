// What is told of opened devices to whoever places work on them.
#include <boost/test/unit_test.hpp>

#include "engine/memory/machine_memory.h"
#include "engine/plugin/devices.h"
#include "tests/support/engine_fixture.h"

using namespace heddle;
using engine::DeviceFacts;
using engine::LinkFacts;

namespace {

constexpr std::uint64_t kHostBudget = 1 << 30;  // less than any machine of ours has free

struct Opened {
  engine::LoadedPlugins plugins =
      engine::load_plugins({HEDDLE_PLUGINS_DIR "/cpu.so", HEDDLE_FAKE_DEVICE_DIR});
  std::vector<engine::RunDevice> devices;
  engine::Topology topology;

  explicit Opened(std::vector<std::string> names,
                  const std::map<std::string, engine::MemorySize>& budgets = {}) {
    engine::DeviceSelection selection;
    selection.names = std::move(names);
    selection.memory.budgets = budgets;
    selection.memory.host_budget = engine::MemorySize{kHostBudget};
    selection.memory.reserves = {{"fake:0", {}}};
    if (std::ranges::find(selection.names, "fake:0") == selection.names.end())
      selection.memory.reserves.clear();
    devices = engine::open_devices(plugins, selection);
    topology = engine::topology_of(devices);
  }
  std::uint64_t free_on(std::size_t device) const { return topology.devices[device].memory_free; }
  std::uint64_t free_when_opened(std::size_t device) const {
    return devices[device].state->device().opening_info().memory_free;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(devices)

BOOST_AUTO_TEST_CASE(devices_in_host_memory_divide_the_host_budget) {
  const Opened alone({"cpu:0"});
  BOOST_TEST(alone.free_on(0) == kHostBudget);
  const Opened three({"cpu:0", "fake:0", "cpu:1", "cpu:2"});
  const std::uint64_t shares = three.free_on(0) + three.free_on(2) + three.free_on(3);
  BOOST_TEST(shares <= kHostBudget);
  BOOST_TEST(double(shares) == double(kHostBudget), boost::test_tools::tolerance(0.01));
  BOOST_TEST(three.free_on(0) > 0u);
  BOOST_TEST(three.free_on(1) == three.free_when_opened(1));  // memory of its own
}

BOOST_AUTO_TEST_CASE(a_budget_in_host_memory_leaves_the_rest_to_the_others) {
  constexpr std::uint64_t kBudget = 64 << 20;
  const Opened two({"cpu:0", "cpu:1"}, {{"cpu:1", {kBudget}}});
  BOOST_TEST(engine::usable_bytes(two.topology.devices[1]) == kBudget);
  BOOST_TEST(two.free_on(0) == kHostBudget - kBudget);
  // More than there is: nothing is left, and nothing wraps around.
  const Opened greedy({"cpu:0", "cpu:1"}, {{"cpu:1", {std::uint64_t{1} << 60}}});
  BOOST_TEST(greedy.free_on(0) == 0u);
  BOOST_TEST(greedy.free_on(1) == kHostBudget);
}

BOOST_AUTO_TEST_CASE(
    half_of_host_memory_less_2_gb_is_used_where_nobody_says_more_but_at_least_4_gb) {
  constexpr std::uint64_t kGb = 1'000'000'000;
  BOOST_TEST(engine::default_host_budget(64 * kGb) == 30 * kGb);
  BOOST_TEST(engine::default_host_budget(8 * kGb) == 4 * kGb);
  BOOST_TEST(engine::default_host_budget(3 * kGb) == 3 * kGb);
}

BOOST_AUTO_TEST_CASE(a_device_reaches_one_that_is_host_memory_without_a_stop) {
  const Opened both({"cpu:0", "fake:0", "cpu:1"});
  const LinkFacts host = both.topology.link(1, engine::kHostSide);
  BOOST_TEST((host.kind == LinkFacts::Kind::direct));
  for (const LinkFacts& link : {both.topology.link(0, 1), both.topology.link(1, 0)}) {
    BOOST_TEST((link.kind == LinkFacts::Kind::direct));
    BOOST_TEST(link.bytes_per_second == host.bytes_per_second);
  }
  BOOST_TEST((both.topology.link(0, 2).kind == LinkFacts::Kind::same));
}

BOOST_AUTO_TEST_SUITE_END()
