// One model on several devices: the bytes of the model on one device, however its calls are divided.
#include <boost/test/unit_test.hpp>
#include <random>

#include "tests/support/engine_fixture.h"
#include "tests/support/placed_runs.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using core::CallPlacement;
using core::CallSpec;
using core::Model;
using core::Node;
using core::Split;

namespace {

constexpr int kWidth = 24, kLayers = 7;

struct Fixture {
  test::TemporaryFolder folder;
  std::string path;
  test::PlacedRuns runs{{.names = {"cpu:0", "cpu:1", "cpu:2", "cpu:3"}, .threads = 1, .reference_kernels = true},
                        {HEDDLE_PLUGINS_DIR, HEDDLE_SAMPLE_PLUGINS_DIR}};

  Fixture() {
    std::mt19937 random(11);
    std::normal_distribution<float> normal(0.0f, 0.2f);
    std::vector<test::FileTensor> tensors;
    for (int l = 0; l < kLayers; ++l) {
      std::vector<float> w(kWidth * kWidth);
      for (float& x : w) x = normal(random);
      tensors.push_back({"layers." + std::to_string(l) + ".weight", "F32", {kWidth, kWidth}, test::bytes_of_floats(w)});
    }
    path = folder.write("layers.safetensors", test::safetensors_bytes(tensors)).string();
  }

  std::string flow(int steps, int sets, const std::string& device = "") const {
    const std::string on = device.empty() ? "" : R"(, "device": ")" + device + "\"";
    return test::workflow(
        {{"load", (R"({"class_type": "test.load", "inputs": {"path": ")" + path + R"("}})").c_str()},
         {"x", R"({"class_type": "test.ramp", "inputs": {"count": 24}})"},
         {"loop", (R"({"class_type": "test.loop", "inputs": {"model": ["load", 0], "x": ["x", 0], "steps": )" + std::to_string(steps) +
                   R"(, "sets": )" + std::to_string(sets) + "}" + on + "}")
                      .c_str()},
         {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["loop", 0]}})"}});
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(session_devices, Fixture)

BOOST_AUTO_TEST_CASE(layers_on_two_three_and_four_devices_give_the_same_bytes) {
  for (const int sets : {1, 2}) {
    const auto alone = runs.run(flow(5, sets), "loop");
    BOOST_TEST_REQUIRE(alone.size() == sizeof(float) * kWidth);
    const std::vector<std::vector<double>> divisions{{1, 1}, {1, 3}, {1, 1, 1}, {2, 1, 3}, {1, 1, 1, 1}, {1, 3, 1, 2}};
    for (const auto& shares : divisions) {
      std::vector<std::uint32_t> devices;
      for (std::uint32_t d = 0; d < shares.size(); ++d) devices.push_back(d);
      const auto split = runs.run(flow(5, sets), "loop", [&](const Node&, std::uint32_t, const Model& model, const CallSpec&) {
        return test::layers(model, devices, shares);
      });
      BOOST_TEST((split == alone), sets << " sets over " << shares.size() << " devices");
    }
  }
}

BOOST_AUTO_TEST_CASE(layers_that_go_back_and_forth_give_the_same_bytes) {
  const auto alone = runs.run(flow(4, 2), "loop");
  const auto split = runs.run(flow(4, 2), "loop", [](const Node&, std::uint32_t, const Model& model, const CallSpec&) {
    CallPlacement placement{Split::layers, {2, 0, 3}, {}, {}, {}};
    for (std::uint32_t n = 0; n < model.graph->nodes.size(); ++n) placement.of_block.push_back(n % 3);
    return placement;
  });
  BOOST_TEST((split == alone));
}

BOOST_AUTO_TEST_CASE(a_model_away_from_its_caller_gives_the_same_bytes) {
  const auto alone = runs.run(flow(3, 2), "loop");
  const auto away = runs.run(flow(3, 2, "cpu:1"), "loop", [](const Node&, std::uint32_t home, const Model&, const CallSpec&) {
    BOOST_TEST(home == 1u);
    return CallPlacement{Split::none, {2}, {}, {}, {}};
  });
  BOOST_TEST((away == alone));
}

BOOST_AUTO_TEST_CASE(two_sets_side_by_side_give_the_same_bytes) {
  const auto alone = runs.run(flow(6, 2), "loop");
  for (const std::vector<std::uint32_t>& devices : {std::vector<std::uint32_t>{0, 1}, {3, 2}}) {
    const auto split = runs.run(flow(6, 2), "loop", [&](const Node&, std::uint32_t, const Model&, const CallSpec& call) {
      BOOST_TEST(call.sets.size() == 2u);
      return CallPlacement{Split::sets, devices, {}, {0, 1}, {}};
    });
    BOOST_TEST((split == alone));
  }
}

BOOST_AUTO_TEST_CASE(memory_of_every_device_returns_to_its_start) {
  const auto used = [&] {
    std::vector<std::uint64_t> bytes;
    runs.environment().cache.clear();
    for (const core::RunDevice& device : runs.environment().devices) {
      device.weights->drop_unused();
      device.state->synchronize();
      bytes.push_back(device.state->memory_use().used);
    }
    return bytes;
  };
  const auto placer = [](const Node&, std::uint32_t, const Model& model, const CallSpec&) { return test::layers(model, {0, 1, 2, 3}, {1, 1, 1, 1}); };
  runs.run(flow(3, 2), "loop", placer);
  const auto before = used();
  for (int i = 0; i < 10; ++i) runs.run(flow(3, 2), "loop", placer);
  BOOST_TEST(used() == before, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
