// What is told of opened devices to whoever places work on them.
#include <boost/test/unit_test.hpp>
#include <cstdlib>

#include "engine/base/text.h"
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

// Options of fake devices that count before they are opened.
struct FakeEnvironment {
  explicit FakeEnvironment(const char* options) { setenv("HEDDLE_FAKE", options, 1); }
  ~FakeEnvironment() { unsetenv("HEDDLE_FAKE"); }
};

BOOST_AUTO_TEST_CASE(devices_are_selected_by_uuid_and_pci_address) {
  const Opened named({"FAKE-00000000-0000-0000-0000-00000000000a", "00000000:02:00.0", "02:00.0"});
  BOOST_REQUIRE(named.devices.size() == 2u);  // one was named twice
  BOOST_TEST(named.topology.devices[0].name == "fake:10");
  BOOST_TEST(named.topology.devices[1].name == "fake:2");
  BOOST_TEST(named.topology.devices[1].pci_address == "0000:02:00.0");
  try {
    const Opened none({"FAKE-ffffffff-0000-0000-0000-00000000000a"});
    BOOST_ERROR("a device that is not there was opened");
  } catch (const engine::Error& error) {
    BOOST_TEST((error.code() == engine::Code::not_found));
    BOOST_TEST(std::string(error.what())
                   .starts_with("there is no device 'FAKE-ffffffff-0000-0000-0000-00000000000a'"),
               error.what());
  }
}

BOOST_AUTO_TEST_CASE(auto_prefers_gpus_of_their_own_to_one_that_is_part_of_the_processor) {
  const auto names = [](const std::vector<std::string>& selection) {
    std::vector<std::string> found;
    for (const DeviceFacts& device : Opened(selection).topology.devices)
      found.push_back(device.name);
    return engine::join(found, " ");
  };
  {
    const FakeEnvironment mixed(R"({"count": 3, "integrated": [true, false]})");
    BOOST_TEST(names({"auto"}) == "fake:1 fake:2");
    BOOST_TEST(names({}) == "fake:1 fake:2");
    BOOST_TEST(names({"fake"}) == "fake:0 fake:1 fake:2");
  }
  const FakeEnvironment alone(R"({"count": 1, "integrated": true})");
  BOOST_TEST(names({"auto"}) == "fake:0");
}

BOOST_AUTO_TEST_CASE(an_integrated_device_has_its_memory_of_the_host_budget) {
  const FakeEnvironment integrated(R"({"count": 2, "integrated": true, "memory": "64GiB"})");
  const Opened one({"fake:1"});
  BOOST_TEST(one.devices[0].state->device().identity().integrated);
  BOOST_TEST(one.free_on(0) == kHostBudget);
  const Opened both({"fake:1", "cpu:0"});
  BOOST_TEST(both.free_on(0) + both.free_on(1) <= kHostBudget);
  BOOST_TEST(both.free_on(0) > 0u);
  BOOST_TEST(both.free_on(1) > 0u);
  const auto block = both.devices[0].state->allocate(kHostBudget / 4);
  BOOST_TEST(both.devices[0].state->ledger().parent()->report().taken >= kHostBudget / 4);
}

BOOST_AUTO_TEST_SUITE_END()
