// One model on several devices: the bytes of the model on one device, however its calls are
// divided.
#include <boost/test/unit_test.hpp>
#include <future>

#include "tests/fake_device/fake_fixture.h"
#include "tests/support/layers_model.h"
#include "tests/support/stride.h"

using namespace heddle;
using engine::CallPlacement;
using engine::CallSpec;
using engine::Model;
using engine::Node;
using engine::ParallelMode;

namespace {

constexpr int kWidth = test::LayersModel::kWidth;

struct SessionDevicesFixture : test::LayersModel {
  SessionDevicesFixture() : LayersModel({"cpu:0", "cpu:1", "cpu:2", "cpu:3"}) {}
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(session_devices, SessionDevicesFixture)

BOOST_AUTO_TEST_CASE(layers_on_two_three_and_four_devices_give_the_same_bytes) {
  for (const int sets : {1, 2}) {
    const auto alone = runs.run(flow(5, sets), "loop");
    BOOST_TEST_REQUIRE(alone.size() == sizeof(float) * kWidth * kItems);
    const std::vector<std::vector<double>> divisions{{1, 1},    {1, 3},       {1, 1, 1},
                                                     {2, 1, 3}, {1, 1, 1, 1}, {1, 3, 1, 2}};
    for (const auto& fractions : divisions) {
      std::vector<std::uint32_t> devices;
      for (std::uint32_t d = 0; d < fractions.size(); ++d) devices.push_back(d);
      const auto split =
          runs.run(flow(5, sets), "loop",
                   [&](const Node&, std::uint32_t, const Model& model, const CallSpec&) {
                     return test::layers(model, devices, fractions);
                   });
      BOOST_TEST((split == alone), sets << " sets over " << fractions.size() << " devices");
    }
  }
}

BOOST_AUTO_TEST_CASE(layers_that_go_back_and_forth_give_the_same_bytes) {
  const auto alone = runs.run(flow(4, 2), "loop");
  const auto split = runs.run(
      flow(4, 2), "loop", [](const Node&, std::uint32_t, const Model& model, const CallSpec&) {
        CallPlacement placement{ParallelMode::layers, {2, 0, 3}, {}, {}, {}};
        for (std::uint32_t n = 0; n < model.graph->nodes.size(); ++n)
          placement.of_block.push_back(n % 3);
        return placement;
      });
  BOOST_TEST((split == alone));
}

BOOST_AUTO_TEST_CASE(a_model_away_from_its_caller_gives_the_same_bytes) {
  const auto alone = runs.run(flow(3, 2), "loop");
  const auto away = runs.run(flow(3, 2, "cpu:1"), "loop",
                             [](const Node&, std::uint32_t home, const Model&, const CallSpec&) {
                               BOOST_TEST(home == 1u);
                               return CallPlacement{ParallelMode::none, {2}, {}, {}, {}};
                             });
  BOOST_TEST((away == alone));
}

BOOST_AUTO_TEST_CASE(two_sets_side_by_side_give_the_same_bytes) {
  const auto alone = runs.run(flow(6, 2), "loop");
  for (const std::vector<std::uint32_t>& devices : {std::vector<std::uint32_t>{0, 1}, {3, 2}}) {
    const auto split = runs.run(
        flow(6, 2), "loop", [&](const Node&, std::uint32_t, const Model&, const CallSpec& call) {
          BOOST_TEST(call.sets.size() == 2u);
          return CallPlacement{ParallelMode::cfg, devices, {}, {0, 1}, {}};
        });
    BOOST_TEST((split == alone));
  }
}

BOOST_AUTO_TEST_CASE(memory_of_every_device_returns_to_its_start) {
  const auto used = [&] {
    std::vector<std::uint64_t> bytes;
    runs.environment().cache.clear();
    for (const engine::RunDevice& device : runs.environment().devices) {
      device.weights->drop_unused();
      device.state->synchronize();
      bytes.push_back(device.state->memory_use().used);
    }
    return bytes;
  };
  const auto placer = [](const Node&, std::uint32_t, const Model& model, const CallSpec&) {
    return test::layers(model, {0, 1, 2, 3}, {1, 1, 1, 1});
  };
  runs.run(flow(3, 2), "loop", placer);
  const auto before = used();
  for (int i = 0; i < 10; ++i) runs.run(flow(3, 2), "loop", placer);
  BOOST_TEST(used() == before, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(devices_that_run_in_any_order_their_events_allow_give_the_same_bytes) {
  const auto alone = runs.run(flow(4, 2), "loop");
  const auto in_layers = [](const Node&, std::uint32_t, const Model& model, const CallSpec&) {
    return test::layers(model, {0, 1, 2, 3}, {1, 1, 1, 1});
  };
  const auto back_and_forth = [](const Node&, std::uint32_t, const Model& model, const CallSpec&) {
    CallPlacement placement{ParallelMode::layers, {2, 0, 3}, {}, {}, {}};
    for (std::uint32_t n = 0; n < model.graph->nodes.size(); ++n)
      placement.of_block.push_back(n % 3);
    return placement;
  };
  const auto in_sets = [](const Node&, std::uint32_t, const Model&, const CallSpec&) {
    return CallPlacement{ParallelMode::cfg, {1, 2}, {}, {0, 1}, {}};
  };
  const std::vector<engine::CallPlacer> placers{in_layers, back_and_forth, in_sets};
  const std::vector<std::vector<std::string>> machines{{"fake:0", "fake:1", "fake:2", "fake:3"},
                                                       {"cpu:0", "fake:0", "cpu:1", "fake:1"},
                                                       {"fake:0", "cpu:0", "fake:1", "cpu:1"}};
  const test::FakeControl control;
  int time = 0;
  for (const auto& machine : machines)
    for (const char* peer : {"true", "false"})
      for (int seed = test::first_of_stride(time++) - 1; seed < 8; seed += test::kStride) {
        LayersModel other(machine,
                          engine::cat(R"({"peer": )", peer, R"(, "shuffle": )", seed, "}"));
        for (std::size_t p = 0; p < placers.size(); ++p)
          BOOST_TEST((other.runs.run(other.flow(4, 2), "loop", placers[p]) == alone),
                     machine[0] << ", peer " << peer << ", seed " << seed << ", placement " << p);
        for (std::uint32_t d = 0; d < 4; ++d) BOOST_TEST(control->freed_in_use(d) == 0u);
      }
}

BOOST_AUTO_TEST_CASE(a_pause_does_not_hold_inside_of_a_step) {
  // It is asked for while the first step is being prepared, before any of its blocks.
  struct Listener final : engine::Observer {
    void node_progress(const Node&, double fraction, std::string_view) override {
      if (fraction < 0.6) first_step.set_value();
    }
    std::promise<void> first_step;
  } listener;
  std::future<void> first_step = listener.first_step.get_future();
  engine::RunControl control;
  runs.environment().place_call = [&](const Node&, std::uint32_t, const Model&, const CallSpec&) {
    control.pause();
    return CallPlacement{ParallelMode::none, {0}, {}, {}, {}};
  };
  std::future<std::vector<std::byte>> run = std::async(
      std::launch::async, [&] { return runs.start(flow(2, 1), "loop", control, listener); });
  BOOST_TEST((first_step.wait_for(std::chrono::seconds(60)) == std::future_status::ready));
  control.resume();
  BOOST_TEST(run.get().size() == sizeof(float) * kWidth * kItems);
}

BOOST_AUTO_TEST_SUITE_END()
