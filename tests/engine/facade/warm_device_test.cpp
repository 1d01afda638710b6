// Which device a run takes beside others: where its weights are, where it waits for less than they
// take to load, and the smallest that has room; and when it uses a second one's memory.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <future>

#include "tests/fake_device/fake_fixture.h"
#include "tests/support/comes_about.h"
#include "tests/support/layers_file.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;

namespace {

// 77 KB over a link of 0.1 MB/s take 0.77 s; a step takes 0.04 s.
constexpr int kWidth = 80, kLayers = 3;

struct WarmFixture {
  test::FakeControl control;
  test::TemporaryFolder folder;

  WarmFixture() {
    for (const char* name : {"a", "b"})
      folder.write(std::string(name) + ".safetensors",
                   test::LayersFile{name, kWidth, kLayers}.bytes());
  }
  static EngineOptions options(const std::string& memory = "1048576") {
    EngineOptions o = test::fake_engine_options(
        {"fake:0", "fake:1"},
        R"({"memory": )" + memory +
            R"(, "flops": 1e6, "launch_seconds": 0, "links": {"host": {"bandwidth": 1e5}}})");
    o.reserves["fake"] = std::uint64_t{0};
    return o;
  }
  double start = 0;
  bool among_many = true;
  Run begin(Engine& engine, const std::string& model, int steps, const std::string& device = "",
            std::shared_future<void> gate = {}, std::promise<void>* begun = nullptr) {
    const std::string path = (folder / (model + ".safetensors")).string();
    Workflow flow = engine.parse(test::workflow(
        {{"load",
          (R"({"class_type": "test.load", "inputs": {"path": ")" + path + R"("}})").c_str()},
         {"loop", (R"({"class_type": "test.planned_loop", "inputs": {"model": ["load", 0], )"
                   R"("width": 80, "steps": )" +
                   std::to_string(steps) + R"(, "start": )" + std::to_string(start += 1) + "}}")
                      .c_str()},
         {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["loop", 0]}})"}}));
    if (!device.empty()) flow.place("loop", device);
    return engine.start(flow, {.observer =
                                   [gate, begun](const Event& e) {
                                     if (e.kind != Event::Kind::node_started || e.node != "loop")
                                       return;
                                     if (begun != nullptr) begun->set_value();
                                     if (gate.valid()) gate.wait_for(std::chrono::minutes(2));
                                   },
                               .among_many = among_many});
  }
  std::string device_of(Engine& engine, const std::string& model, int steps = 1) {
    Run run = begin(engine, model, steps);
    const std::vector<std::string> devices = run.devices();
    run.wait();
    return devices.at(0);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(warm_device, WarmFixture)

BOOST_AUTO_TEST_CASE(an_idle_device_that_has_the_weights_is_taken) {
  Engine engine(options());
  BOOST_TEST(device_of(engine, "a") == "fake:0");
  begin(engine, "b", 1, "fake:1").wait();
  BOOST_TEST(device_of(engine, "b") == "fake:1");
  BOOST_TEST(device_of(engine, "a") == "fake:0");
  engine.unload("fake:1");
  BOOST_TEST(device_of(engine, "b") == "fake:0");
}

BOOST_AUTO_TEST_CASE(
    a_busy_device_that_has_the_weights_is_taken_where_waiting_is_shorter_than_loading) {
  for (const auto& [steps, device] : {std::pair(2, "fake:1"), std::pair(100, "fake:0")}) {
    Engine engine(options());
    begin(engine, "b", 1, "fake:1").wait();
    std::promise<void> gate, begun;
    Run busy = begin(engine, "b", steps, "fake:1", gate.get_future().share(), &begun);
    test::given(begun.get_future(), "the begin of the loop");
    BOOST_TEST(device_of(engine, "b") == device, steps << " steps");
    gate.set_value();
    busy.wait();
  }
}

BOOST_AUTO_TEST_CASE(of_devices_that_are_alike_the_smallest_with_room_is_taken) {
  Engine engine(options("[1048576, 524288]"));
  BOOST_TEST(device_of(engine, "a") == "fake:1");
  Engine small(options("[1048576, 65536]"));
  BOOST_TEST(device_of(small, "a", 10) == "fake:0");  // there it would be streamed in every step
}

// Neither device has room for the model. What an idle one holds of it comes faster than from the
// host; beside other runs, these would have to load again what it gave up for that.
BOOST_AUTO_TEST_CASE(weights_are_kept_on_another_device_by_a_run_alone) {
  for (const bool is_alone : {true, false}) {
    Engine engine(options("65536"));
    among_many = !is_alone;
    const std::uint64_t before = control->weights(1);
    begin(engine, "a", 20, "fake:0").wait();
    BOOST_TEST((control->weights(1) > before) == is_alone, "alone: " << is_alone);
  }
}

BOOST_AUTO_TEST_SUITE_END()
