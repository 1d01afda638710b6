// Runs of a loop of 40 steps over a model on small fake devices, whose steps a test hears of.
#pragma once

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/fake_device/fake_fixture.h"
#include "tests/support/comes_about.h"
#include "tests/support/layers_file.h"
#include "tests/support/temporary_folder.h"

namespace heddle::test {

inline constexpr int kWide = 80, kDeep = 3, kSteps = 40;
inline constexpr std::uint64_t kBytes = std::uint64_t{kDeep} * kWide * kWide * sizeof(float);

// What a run tells of its loop, and what is done there: before the step that it is about to take.
struct Steps {
  std::mutex mutex;
  std::condition_variable changed;
  int steps = 0;
  std::vector<std::string> devices;  // of the calls, in their order
  std::function<void(int)> at_step;

  Observer observer() {
    return [this](const Event& e) {
      if (e.node != "loop") return;
      int step = 0;
      {
        const std::lock_guard lock(mutex);
        if (e.kind == Event::Kind::node_started) devices.emplace_back(e.device);
        if (e.kind != Event::Kind::node_progress) return;
        step = ++steps;
        changed.notify_all();
      }
      if (at_step) at_step(step);
    };
  }
  void await(int step) {
    std::unique_lock lock(mutex);
    BOOST_TEST_REQUIRE(
        changed.wait_for(lock, std::chrono::minutes(1), [&] { return steps >= step; }),
        "the loop does not come to step " << step << ", it is at " << steps);
  }
  int now() {
    const std::lock_guard lock(mutex);
    return steps;
  }
};

struct SteppedRuns {
  FakeControl control;
  TemporaryFolder folder;
  const LayersFile a{"a", kWide, kDeep}, b{"b", kWide, kDeep};

  SteppedRuns() {
    for (const LayersFile& model : {a, b}) folder.write(model.name + ".safetensors", model.bytes());
  }
  // One run on each device, and no second one.
  static EngineOptions options(std::vector<std::string> devices) {
    EngineOptions o = fake_engine_options(std::move(devices), R"({"memory": 1048576})");
    o.budgets["fake"] = 2 * kBytes;
    o.reserves["fake"] = std::uint64_t{0};
    o.compute["fake"] = "f32";  // what its processor is best at may be another type
    return o;
  }
  Run begin(Engine& engine, const LayersFile& model, double start, StartOptions o = {}) {
    const std::string path = (folder / (model.name + ".safetensors")).string();
    o.fetch = {"keep.out"};
    o.inputs = {{"loop.start", start}};
    return engine.start(
        engine.parse(workflow(
            {{"load",
              (R"({"class_type": "test.load", "inputs": {"path": ")" + path + R"("}})").c_str()},
             {"loop", R"({"class_type": "test.planned_loop",
                          "inputs": {"model": ["load", 0], "width": 80, "steps": 40}})"},
             {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["loop", 0]}})"}})),
        std::move(o));
  }
  static std::vector<float> loop(const Results& results) { return results.floats("keep.out"); }
  // Without a stop: what every run has to give, to the bit.
  std::vector<float> whole(const LayersFile& model, double start) {
    Engine engine(options({"fake:0"}));
    std::vector<float> values = loop(begin(engine, model, start).wait());
    BOOST_TEST(model.gives(values, start, kSteps));
    return values;
  }
  static void await_nothing_on(const Engine& engine, std::size_t device) {
    BOOST_TEST_REQUIRE(
        comes_about([&] { return engine.devices().at(device).memory.taken == 0; }),
        "device " << device << " still holds " << engine.devices().at(device).memory.taken);
  }
};

}  // namespace heddle::test
