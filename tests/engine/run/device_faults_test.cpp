// What devices lose when they fail: weights that are being copied, steps under way, work that
// nobody has waited for yet. Whoever used it is told; the next run has the same bytes, and the
// memory that the first one began with.
#include <array>
#include <boost/test/unit_test.hpp>

#include "engine/base/error.h"
#include "engine/resources/device_recovery.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/layers_model.h"
#include "tests/support/stride.h"

using namespace heddle;
using engine::CallSpec;
using engine::Model;
using engine::Node;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// What this throws, or "".
template <class F>
std::string reason_of_failure(F&& body) {
  try {
    body();
  } catch (const engine::Error& error) {
    return error.full();
  }
  return "";
}

struct Losses {
  test::FakeControl control;
  test::LayersModel layers{{"fake:0", "fake:1"}, R"({"peer": false})"};
  std::vector<std::byte> good = run();
  std::vector<std::uint64_t> before = layers.used();

  static engine::CallPlacement halves(const Model& model) {
    return test::layers(model, {0, 1}, {1, 1});
  }
  std::vector<std::byte> run() {
    return layers.runs.run(layers.flow(3, 2), "loop",
                           [](const Node&, std::uint32_t, const Model& model, const CallSpec&) {
                             return halves(model);
                           });
  }
  unsigned failures(std::uint32_t device) {
    return layers.runs.environment().devices[device].health->report().failures;
  }
  void check_next_run() {
    std::vector<std::byte> again;
    BOOST_TEST(reason_of_failure([&] { again = run(); }) == "");
    BOOST_TEST((again == good));
    BOOST_TEST(layers.used() == before, boost::test_tools::per_element());
  }

  // A session of two sets and three steps by itself; what its last step gives for the first set.
  std::vector<std::byte> steps(std::function<bool()> cancelled = [] { return false; }) {
    test::LayersModel::Opened opened = layers.open(3, 2, halves, std::move(cancelled));
    for (std::uint32_t i = 0; i < 3; ++i) opened.step(i);
    const engine::Tensor& x =
        engine::get_tensor(**std::get<engine::Record>(opened.x[0]->content).find("x"));
    std::vector<std::byte> bytes(engine::dense_bytes(x->info));
    layers.state(0).read(x, bytes.data(), bytes.size());
    return bytes;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(device_faults, Losses)

BOOST_AUTO_TEST_CASE(a_device_that_dies_while_weights_are_copied_or_in_the_middle_of_a_step) {
  const std::vector<std::byte> well = steps();
  int points = 0;  // at which a session asks whether it is cancelled
  for (engine::RunDevice& device : layers.runs.environment().devices) device.weights->drop_unused();
  steps([&] { return ++points < 0; });
  BOOST_TEST(points > 20);
  for (std::uint32_t device : {0u, 1u})
    for (int point = test::first_of_stride(int(device)); point <= points;
         point += 2 * test::kStride) {
      BOOST_TEST_INFO("fake:" << device << " at point " << point);
      for (engine::RunDevice& d : layers.runs.environment().devices) d.weights->drop_all();
      int passed = 0;
      const std::string reason = reason_of_failure([&] {
        steps([&] {
          if (++passed == point) control->kill(device);
          return false;
        });
      });
      BOOST_TEST(contains(reason, "the device has died"), reason);
      control->revive(device);
      // As the run does that a session belongs to.
      for (std::uint32_t d : {0u, 1u}) layers.state(d).settle();
      engine::report_failures(layers.runs.environment(), {{device, reason}});
      std::vector<std::byte> again;
      BOOST_TEST(reason_of_failure([&] { again = steps(); }) == "");
      BOOST_TEST((again == well));
      BOOST_TEST(layers.used() == before, boost::test_tools::per_element());
      layers.runs.environment().devices[device].health->run_succeeded();
    }
  check_next_run();
}

BOOST_AUTO_TEST_CASE(a_device_that_dies_between_two_steps_of_a_run) {
  for (std::uint32_t device : {0u, 1u})
    for (int step = 1; step <= 2; ++step) {
      int reported = 0;
      layers.runs.on_progress = [&] {
        if (++reported == step) control->kill(device);
      };
      const std::string reason = reason_of_failure([&] { run(); });
      layers.runs.on_progress = nullptr;
      BOOST_TEST(contains(reason, "node 'loop'"), reason);
      BOOST_TEST(contains(reason, engine::cat("fake:", device, ": the device has died")), reason);
      BOOST_TEST(failures(device) == 1u);
      BOOST_TEST(failures(1 - device) == 0u);  // it was only taken along
      control->revive(device);
      check_next_run();
      BOOST_TEST(failures(device) == 0u);
    }
}

BOOST_AUTO_TEST_CASE(a_failure_that_came_over_from_another_device_is_counted_there) {
  for (std::uint32_t device : {0u, 1u}) {
    control->reset();
    run();
    const std::uint64_t launches = control->launches(device, nullptr);
    for (std::uint64_t nth = 1; nth <= launches; nth += 5) {
      control->reset();
      control->fail_launch(device, nth);
      const std::string reason = reason_of_failure([&] { run(); });
      BOOST_TEST(contains(reason, "node '"), reason);
      BOOST_TEST(failures(device) == 1u);
      BOOST_TEST(failures(1 - device) == 0u);
      check_next_run();
    }
  }
}

BOOST_AUTO_TEST_CASE(a_failure_found_when_the_run_waits_for_its_devices_names_device_and_node) {
  control->reset();
  run();
  const std::uint64_t launches = control->launches(1, nullptr);
  control->fail_launch(1, launches);  // the last one on a device that has only this node's work
  const std::string reason = reason_of_failure([&] { run(); });
  BOOST_TEST(contains(reason, "node 'loop'"), reason);
  BOOST_TEST(contains(reason, "fake:1: "), reason);
  check_next_run();
}

BOOST_AUTO_TEST_CASE(an_allocation_that_fails_is_tried_again_and_is_no_failure_of_the_device) {
  for (std::uint32_t device : {0u, 1u}) {
    for (std::uint64_t nth = 1; nth <= 4; ++nth) {
      for (std::uint32_t d : {0u, 1u}) {
        layers.used();
        layers.state(d).pool().trim();
      }
      const std::uint64_t made = control->allocations(device);
      control->fail_alloc(device, nth);
      std::vector<std::byte> bytes;
      BOOST_TEST(reason_of_failure([&] { bytes = run(); }) == "");
      BOOST_TEST((bytes == good));
      control->fail_alloc(device, 0);
      BOOST_TEST((nth > 1 || control->allocations(device) > made));
      BOOST_TEST(failures(device) == 0u);
      BOOST_TEST(layers.used() == before, boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_weight_that_could_not_be_made_is_lost_to_all_that_have_it) {
  engine::DeviceState& state = layers.state(0);
  engine::WeightStore& store = *layers.runs.environment().devices[0].weights;
  store.drop_all();
  const auto checkpoint = engine::open_checkpoint(layers.path);
  const engine::TensorView& tensor = checkpoint.at("layers.0.weight");
  engine::WeightSource source;
  source.parts = {{&tensor, 0, tensor.shape[0]}};
  source.use = HEDDLE_USE_LINEAR;
  const std::uint64_t bytes = store.bytes();

  control->fail_copy(0, 1);
  const float one = 1;
  const engine::Tensor failing =
      state.upload(engine::make_info(HEDDLE_F32, std::array<std::int64_t, 1>{1}), &one);
  const auto first = store.get(source, checkpoint.identity());
  const auto second = store.get(source, checkpoint.identity());
  BOOST_TEST((first == second));
  state.settle();  // the end of another run, which hears of the failure in their place
  const auto finish = [&](std::shared_ptr<const engine::DeviceWeight> weight) {
    return reason_of_failure([&] { store.finish(std::span(&weight, 1)); });
  };
  const std::string reason = finish(first);
  BOOST_TEST(contains(reason, "fake:0: the device failed while weights were copied"), reason);
  BOOST_TEST(contains(reason, "a test asked for it"), reason);
  BOOST_TEST(contains(finish(second), "weights could not be made"));
  BOOST_TEST(store.bytes() == bytes);

  const auto third = store.get(source, checkpoint.identity());
  BOOST_TEST((third != first));
  BOOST_TEST(finish(third) == "");
  std::vector<std::byte> made(third->layout.bytes), file(tensor.data.begin(), tensor.data.end());
  const engine::Tensor on_device = engine::make_tensor(third->layout.info, third->memory, 0);
  state.read(on_device, made.data(), made.size());
  BOOST_TEST((made == file));
}

BOOST_AUTO_TEST_CASE(a_run_whose_work_was_lost_while_another_one_waited_does_not_end_well) {
  // Between two steps somebody else's work on the same device fails, and somebody else waits for
  // it.
  bool done = false;
  layers.runs.on_progress = [&] {
    if (std::exchange(done, true)) return;
    control->fail_copy(1, 1);
    const float one = 1;
    const engine::Tensor failing =
        layers.state(1).upload(engine::make_info(HEDDLE_F32, std::array<std::int64_t, 1>{1}), &one);
    layers.state(1).settle();
  };
  const std::string reason = reason_of_failure([&] { run(); });
  layers.runs.on_progress = nullptr;
  BOOST_TEST(contains(reason, "node 'loop'"), reason);
  BOOST_TEST(contains(reason, "fake:1: "), reason);
  check_next_run();
}

BOOST_AUTO_TEST_CASE(outputs_from_before_a_failure_are_not_taken_after_it) {
  const auto launched = [&] {
    const std::uint64_t before = control->launches(0, nullptr);
    engine::RunControl running;
    BOOST_TEST((layers.runs.start(layers.flow(3, 2), "loop", running) == good));
    return control->launches(0, nullptr) - before;
  };
  run();
  BOOST_TEST(launched() == 0u);  // all of it is kept
  control->fail_copy(0, 1);
  const float one = 1;
  layers.state(0).upload(engine::make_info(HEDDLE_F32, std::array<std::int64_t, 1>{1}), &one);
  layers.state(0).settle();
  BOOST_TEST(launched() > 0u);
  BOOST_TEST(launched() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
