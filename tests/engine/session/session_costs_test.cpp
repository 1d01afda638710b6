// What a divided call costs on fake devices, exactly: the bytes that its plan foretells, and the
// time of what cannot be done at once.
#include <boost/test/unit_test.hpp>

#include "tests/fake_device/fake_fixture.h"
#include "tests/support/layers_model.h"

using namespace heddle;
using engine::CallPlacement;
using engine::Model;
using engine::ParallelMode;

BOOST_AUTO_TEST_SUITE(session_costs)

namespace {

const std::vector<std::string> kFakes{"fake:0", "fake:1", "fake:2", "fake:3"};
using Bytes = std::map<std::pair<std::uint32_t, std::uint32_t>,
                       std::uint64_t>;  // from, to: of devices, or the host

struct Division {
  const char* name;
  std::uint32_t sets;
  std::function<CallPlacement(const Model&)> parallelize;
};

std::vector<Division> divisions() {
  return {
      {"layers", 2,
       [](const Model& model) {
         return test::layers(model, {0, 1, 2, 3}, {1, 1, 1, 1});
       }},
      {"uneven layers", 1,
       [](const Model& model) {
         return test::layers(model, {0, 2}, {1, 3});
       }},
      {"back and forth", 2,
       [](const Model& model) {
         CallPlacement placement{ParallelMode::layers, {0, 1, 2}, {}, {}, {}};
         for (std::uint32_t n = 0; n < model.graph->nodes.size(); ++n)
           placement.of_block.push_back(n % 3);
         return placement;
       }},
      {"sets", 2,
       [](const Model&) {
         return CallPlacement{ParallelMode::cfg, {0, 3}, {}, {0, 1}, {}};
       }},
  };
}

// What crosses by the plan, in `steps` steps, between places that are these devices.
Bytes foretold(const engine::SessionPlan& plan, const std::vector<std::uint32_t>& devices,
               std::uint64_t steps, bool peer) {
  Bytes bytes;
  const auto add = [&](std::uint32_t from, std::uint32_t to, std::uint64_t all) {
    if (peer) {
      bytes[{devices[from], devices[to]}] += all;
    } else {
      bytes[{devices[from], HEDDLE_FAKE_HOST}] += all;
      bytes[{HEDDLE_FAKE_HOST, devices[to]}] += all;
    }
  };
  for (std::size_t phase = 0; phase < 3; ++phase)
    for (const engine::SessionAction& action : plan.phases[phase]) {
      if (action.kind != engine::SessionAction::Kind::transfer) continue;
      const engine::PlannedTransfer& t = plan.transfers[action.index];
      add(t.from, t.to, t.bytes * (phase == 2 ? steps : 1));
    }
  // What is given before anything runs goes from home, which is the first place, to its readers.
  for (const engine::SessionStorage& s : plan.storages)
    if (s.device_slot != 0 && (s.kind == engine::SessionStorage::Kind::loop_invariant ||
                               s.kind == engine::SessionStorage::Kind::precomputed))
      add(0, s.device_slot, s.bytes);
  return bytes;
}

Bytes counted(const test::FakeControl& control) {
  Bytes bytes;
  const std::uint32_t sides[] = {0, 1, 2, 3, HEDDLE_FAKE_HOST};
  for (const std::uint32_t from : sides)
    for (const std::uint32_t to : sides)
      if (from != to && control->bytes_copied(from, to) > 0)
        bytes[{from, to}] = control->bytes_copied(from, to);
  return bytes;
}

std::string text(const Bytes& bytes) {
  std::string out;
  for (const auto& [ends, count] : bytes)
    out += engine::cat(ends.first, ">", ends.second, ": ", count, "; ");
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_bytes_that_cross_are_those_of_the_plan) {
  constexpr std::uint32_t kSteps = 5;
  for (const bool peer : {true, false})
    for (const Division& division : divisions()) {
      test::LayersModel layers(kFakes, peer ? "{}" : R"({"peer": false})");
      auto keeps_weights = layers.open(
          1, division.sets, division.parallelize);  // weights are in the store from here on
      keeps_weights.step(0);
      auto opened = layers.open(kSteps, division.sets, division.parallelize);
      const test::FakeControl control;  // counts from here
      for (std::uint32_t i = 0; i < kSteps; ++i) opened.step(i);
      for (std::uint32_t d = 0; d < 4; ++d) layers.state(d).synchronize();
      const auto devices = division.parallelize(*engine::get_model(*layers.model())).devices;
      const Bytes expected = foretold(*opened.session->plan(), devices, kSteps, peer),
                  found = counted(control);
      BOOST_TEST(!expected.empty());
      BOOST_TEST((found == expected), division.name << ", peer " << peer << ": counted "
                                                    << text(found) << " foretold "
                                                    << text(expected));
      BOOST_TEST(control->weights(0) + control->weights(1) + control->weights(2) +
                     control->weights(3) ==
                 0u);
      for (std::uint32_t d = 0; d < 4; ++d) BOOST_TEST(control->freed_in_use(d) == 0u);
    }
}

// A layer takes a second, and so does a crossing of its 96 bytes; nothing else takes any time.
constexpr const char* kSeconds = R"({"op_seconds": {"linear": 1, "*": 0},
    "links": {"peer": {"bandwidth": 192, "latency": 0.5}, "host": {"bandwidth": 1e300, "latency": 0}}})";

// What a step takes when the one before it is over.
double step_seconds(test::LayersModel& layers, const test::FakeControl& control, std::uint32_t sets,
                    const std::function<CallPlacement(const Model&)>& parallelize) {
  auto opened = layers.open(3, sets, parallelize);
  const auto now = [&] {
    for (std::uint32_t d = 0; d < 4; ++d) layers.state(d).synchronize();
    double latest = 0;
    for (std::uint32_t d = 0; d < 4; ++d) latest = std::max(latest, control->now(d));
    return latest;
  };
  opened.step(0);
  const double begin = now();
  opened.step(1);
  const double middle = now();
  opened.step(2);
  BOOST_TEST(now() - middle == middle - begin);
  return middle - begin;
}

BOOST_AUTO_TEST_CASE(two_sets_take_the_time_of_one_and_two_crossings) {
  test::LayersModel layers(kFakes, kSeconds);
  const test::FakeControl control;
  const double alone = step_seconds(layers, control, 1, [](const Model&) {
    return CallPlacement{ParallelMode::none, {0}, {}, {}, {}};
  });
  BOOST_TEST(alone == double(test::LayersModel::kLayers));
  const double both = step_seconds(layers, control, 2, [](const Model&) {
    return CallPlacement{ParallelMode::none, {0}, {}, {}, {}};
  });
  BOOST_TEST(both == 2 * alone);
  const double divided = step_seconds(layers, control, 2, [](const Model&) {
    return CallPlacement{ParallelMode::cfg, {0, 1}, {}, {0, 1}, {}};
  });
  BOOST_TEST(divided == alone + 1 + 1);
}

BOOST_AUTO_TEST_CASE(a_crossing_hides_behind_the_layers_of_the_other_set) {
  test::LayersModel layers(kFakes, kSeconds);
  const test::FakeControl control;
  // Layers 0 to 3 on one device, 4 to 6 on another. The sets take turns layer by layer: set 1's
  // fourth layer hides the way of set 0, and the way of set 1 is hidden behind set 0's fifth layer.
  const double divided = step_seconds(layers, control, 2, [](const Model& model) {
    CallPlacement placement{ParallelMode::layers, {0, 1}, {}, {}, {}};
    for (const engine::Node& node : model.graph->nodes)
      placement.of_block.push_back(node.id > "layer.3" && node.id.starts_with("layer.") ? 1 : 0);
    return placement;
  });
  // 8 layers on device 0, then set 1's way is a second, of which set 0's layer takes all; then 6
  // layers there, less the one that began before; and the way back of set 1.
  BOOST_TEST(divided == 8 + 6 + 1);
}

BOOST_AUTO_TEST_SUITE_END()
