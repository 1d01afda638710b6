// Many divided runs at once over four devices: nothing is lost, nothing is kept, and every run that
// finishes has the bytes of one device.
#include <boost/test/unit_test.hpp>
#include <random>
#include <thread>

#include "engine/base/error.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/layers_model.h"

using namespace heddle;
using engine::CallPlacement;
using engine::CallSpec;
using engine::Model;
using engine::Node;
using engine::ParallelMode;

namespace {

// Another way with every call, by the seed of the thread that makes it.
CallPlacement any_way(std::mt19937& random, std::uint32_t home, const Model& model) {
  std::vector<std::uint32_t> devices{0, 1, 2, 3};
  std::ranges::shuffle(devices, random);
  switch (random() % 5) {
    case 0:
      return {ParallelMode::none, {home}, {}, {}, {}};
    case 1:
      return {ParallelMode::cfg, {devices[0], devices[1]}, {}, {0, 1}, {}};
    case 2:
      return {ParallelMode::data, {devices[0], devices[1], devices[2]}, {}, {}, {0.5, 0.25, 0.25}};
    case 3:
      return test::layers(model, devices, {1, 2, 1, 3});
    default:
      return test::layers(model, {devices[0], devices[1]}, {1, 1});
  }
}

void run_many(test::LayersModel& layers) {
  const auto alone = layers.runs.run(layers.flow(3, 2), "loop");
  layers.runs.environment().place_call = [](const Node&, std::uint32_t home, const Model& model,
                                            const CallSpec&) {
    thread_local std::mt19937 random(
        unsigned(std::hash<std::thread::id>()(std::this_thread::get_id())));
    return any_way(random, home, model);
  };
  const auto before = layers.used();
  std::atomic<int> next{0}, finished{0}, cancelled{0}, wrong{0};
  {
    std::vector<std::jthread> starters;
    for (unsigned t = 0; t < 16; ++t)
      starters.emplace_back([&, t] {
        std::mt19937 random(t);
        while (next++ < 200) {
          engine::RunControl control;
          std::jthread canceller;
          if (random() % 3 == 0)
            canceller = std::jthread([&control, spins = random() % 5000] {
              for (unsigned i = 0; i < spins; ++i) std::this_thread::yield();
              control.cancel();
            });
          try {
            if (layers.runs.start(layers.flow(3, 2), "loop", control) != alone) ++wrong;
            ++finished;
          } catch (const engine::Error& error) {
            ++cancelled;
            if (error.code() != engine::Code::cancelled) {
              ++wrong;
              BOOST_TEST_MESSAGE(error.full());
            }
          }
        }
      });
  }
  BOOST_TEST(finished + cancelled == 200);
  BOOST_TEST(finished >= 100);
  BOOST_TEST(wrong == 0);
  BOOST_TEST(layers.used() == before, boost::test_tools::per_element());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(many_divided_runs)

BOOST_AUTO_TEST_CASE(sixteen_threads_divide_two_hundred_runs_over_four_processors) {
  test::LayersModel layers({"cpu:0", "cpu:1", "cpu:2", "cpu:3"});
  run_many(layers);
}

BOOST_AUTO_TEST_CASE(sixteen_threads_divide_two_hundred_runs_over_four_fakes) {
  const test::FakeControl control;
  test::LayersModel layers({"fake:0", "fake:1", "fake:2", "fake:3"});
  run_many(layers);
  for (std::uint32_t d = 0; d < 4; ++d) BOOST_TEST(control->freed_in_use(d) == 0u);
}

BOOST_AUTO_TEST_CASE(sixteen_threads_divide_two_hundred_runs_over_fakes_without_peers) {
  const test::FakeControl control;
  test::LayersModel layers({"fake:0", "fake:1", "fake:2", "fake:3"}, R"({"peer": false})");
  run_many(layers);
  for (std::uint32_t d = 0; d < 4; ++d) BOOST_TEST(control->freed_in_use(d) == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
