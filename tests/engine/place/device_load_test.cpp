// What runs under way leave to a device, and how runs that need the same weights are spread.
#include "engine/place/device_load.h"

#include <boost/test/unit_test.hpp>

#include "engine/place/place.h"
#include "tests/support/random_tasks.h"
#include "tests/support/shape_models.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_nodes.h"

using namespace heddle;
using namespace heddle::engine;

namespace {

constexpr Hash128 kModel{1, 2}, kOther{3, 4};

DeviceLoad nothing(std::size_t devices) {
  DeviceLoad load;
  load.busy_seconds.assign(devices, 0);
  load.resident.resize(devices);
  return load;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(device_load)

BOOST_AUTO_TEST_CASE(weights_that_several_runs_need_are_brought_once) {
  DeviceLoad load = nothing(2);
  const PlannedLoad small{kModel, 1, 100, 4}, large{kModel, 1, 150, 6}, other{kOther, 1, 10, 1};
  add_runs(std::vector<RunLoad>{{{0, 8}, {small}, 0.5}, {{0, 8}, {large, other}, 1}}, load);
  BOOST_TEST(load.busy_seconds[0] == 0);
  BOOST_TEST(load.busy_seconds[1] == 4 + 8 + 6 + 1);
  BOOST_TEST(load.resident[0].empty());
  BOOST_TEST(load.resident[1].at(kModel) == 150u);
  BOOST_TEST(load.resident[1].at(kOther) == 10u);
}

BOOST_AUTO_TEST_CASE(what_is_there_is_not_brought) {
  DeviceLoad load = nothing(1);
  load.resident[0][kModel] = 75;
  load.resident[0][kOther] = 20;
  add_runs(std::vector<RunLoad>{{{1}, {{kModel, 0, 100, 4}, {kOther, 0, 10, 1}}, 1}}, load);
  BOOST_TEST(load.busy_seconds[0] == 1 + 4 * 0.25);
  BOOST_TEST(load.resident[0].at(kModel) == 100u);
  BOOST_TEST(load.resident[0].at(kOther) == 20u);
}

BOOST_AUTO_TEST_CASE(weights_of_a_run_that_is_nearly_done_are_not_waited_for) {
  DeviceLoad load = nothing(1);
  add_runs(std::vector<RunLoad>{{{8}, {{kModel, 0, 100, 4}, {kOther, 0, 10, 1}}, 0.25},
                                {{8}, {{kOther, 0, 10, 1}}, 0}},
           load);
  BOOST_TEST(load.busy_seconds[0] == 2 + 1 + 0.25);
  DeviceLoad none = nothing(1);
  add_runs(std::vector<RunLoad>{{{8}, {{kModel, 0, 100, 4}}, 0}}, none);
  BOOST_TEST(none.busy_seconds[0] == 0);
  BOOST_TEST(none.resident[0].empty());
}

BOOST_AUTO_TEST_CASE(weights_that_pass_do_so_in_each_run) {
  DeviceLoad load = nothing(1);
  const PlannedLoad passing{kModel, 0, 0, 4};
  add_runs(std::vector<RunLoad>{{{1}, {passing}, 1}, {{1}, {passing}, 0.5}}, load);
  BOOST_TEST(load.busy_seconds[0] == 1 + 4 + 0.5 + 2);
  BOOST_TEST(load.resident[0].empty());
}

// A model that lies on one of two devices: the other is worth what bringing it takes, once.
BOOST_AUTO_TEST_CASE(runs_of_a_model_are_spread_evenly_though_it_is_on_one_device) {
  const test::TemporaryFolder folder;
  const Value value = test::chain_model(folder / "chain.safetensors", 8, 2048, {});
  Graph graph;
  auto node = std::make_shared<test::TestNode>("call");
  node->out("TENSOR");
  graph.nodes.push_back({"call", "", test::type_of(node), false, {}, {}, {}, {}});
  graph.order = {0};
  Inferred inferred;
  inferred.nodes.emplace_back();
  inferred.nodes[0].outputs.resize(1);
  inferred.nodes[0].calls.push_back(
      test::shape_call(value, {.tokens = 4096, .steps = 20, .sets = 1}, 2048));
  const Topology topology = test::equal_devices(2, 1e11, 1e-6);
  const Hash128 model = get_model(*value)->identity;

  std::vector<RunLoad> under_way;
  std::vector<int> runs(2, 0);
  for (int run = 0; run < 16; ++run) {
    DeviceLoad load = nothing(2);
    load.among_many = true;
    load.resident[0][model] = std::uint64_t{1} << 40;
    add_runs(under_way, load);
    const Placement placed = place({graph, inferred, topology, Costs(), {}, {}, load});
    BOOST_TEST_REQUIRE(placed.assignments[0].devices.size() == 1u);
    const std::uint32_t device = placed.assignments[0].device;
    ++runs[device];
    // As if bringing it took as long as a fifth of the run.
    std::vector<PlannedLoad> loads = placed.loads;
    BOOST_TEST_REQUIRE(loads.size() == 1u);
    for (PlannedLoad& each : loads) {
      BOOST_TEST(each.device == device);
      BOOST_TEST(each.bytes > 0u);
      each.seconds = placed.device_seconds[device] / 5;
    }
    under_way.push_back({placed.device_seconds, std::move(loads), 1});
  }
  BOOST_TEST(runs == std::vector<int>(2, 8), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
