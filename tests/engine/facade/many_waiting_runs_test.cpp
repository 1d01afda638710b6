// Two hundred runs of mixed sizes at once, over four devices that hold two of them each.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <future>
#include <random>
#include <thread>

#include "heddle/abi/base.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/comes_about.h"
#include "tests/support/layers_file.h"
#include "tests/support/stride.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;

namespace {

constexpr std::uint32_t kDevices = 4;
constexpr int kRuns = 200, kMostSteps = 10;
// Of the true clock for each simulated second, so that runs end in the order of simulated time, and
// what the host does between them takes little of it.
// With a sanitizer the host takes longer than the devices, and nothing is said of the time.
#if defined(HEDDLE_ADDRESS_SANITIZER) || defined(HEDDLE_THREAD_SANITIZER)
constexpr double kPace = 0;
#else
constexpr double kPace = 0.4;
#endif
constexpr double kFlops =
    1e6;  // a second, simulated: what is computed takes long, loading does not

struct ManyRunsFixture {
  test::FakeControl control;
  test::TemporaryFolder folder;
  const std::vector<test::LayersFile> models{
      {"small", 32, 2}, {"wide", 64, 2}, {"deep", 64, 4}, {"large", 96, 3}};

  ManyRunsFixture() {
    for (const test::LayersFile& model : models)
      folder.write(model.name + ".safetensors", model.bytes());
  }
  static std::uint64_t bytes(const test::LayersFile& model) {
    return std::uint64_t(model.layers) * std::uint64_t(model.width) * std::uint64_t(model.width) *
           sizeof(float);
  }
  // Two of the largest on each device, and what their captured graphs and the cached outputs of
  // runs that are over take beside them: with less, some runs lack memory and begin again.
  EngineOptions options(double pace = 0) const {
    EngineOptions o = test::fake_engine_options(
        {"fake:0", "fake:1", "fake:2", "fake:3"},
        R"({"memory": 1048576, "flops": )" + std::to_string(kFlops) +
            R"(, "launch_seconds": 0, "pace": )" + std::to_string(pace) + "}");
    o.budgets["fake"] = 2 * bytes(models.back()) + (72 << 10);
    o.reserves["fake"] = std::uint64_t{0};
    return o;
  }
  Run begin(Engine& engine, int i, int steps, StartOptions o = {}) {
    const test::LayersFile& model = models[std::size_t(i) % models.size()];
    const std::string path = (folder / (model.name + ".safetensors")).string();
    const std::string text = test::workflow(
        {{"load",
          (R"({"class_type": "test.load", "inputs": {"path": ")" + path + R"("}})").c_str()},
         {"loop", (R"({"class_type": "test.planned_loop", "inputs": {"model": ["load", 0], )"
                   R"("width": )" +
                   std::to_string(model.width) + R"(, "steps": )" + std::to_string(steps) +
                   R"(, "start": )" + std::to_string(i) + "}}")
                      .c_str()},
         {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["loop", 0]}})"}});
    o.fetch = {"keep.out"};
    o.among_many = true;
    return engine.start(engine.parse(text), std::move(o));
  }
  // What a device has to do for a run, simulated: for each model, by steps less one.
  std::vector<std::vector<double>> seconds_alone() {
    EngineOptions o = options();
    o.devices = {"fake:0"};
    Engine engine(o);
    std::vector<std::vector<double>> seconds(models.size());
    for (std::size_t m = 0; m < models.size(); ++m)
      for (int steps = 1; steps <= kMostSteps; ++steps) {
        const double before = control->now(0);
        begin(engine, int(m), steps).wait();
        seconds[m].push_back(control->now(0) - before);
      }
    return seconds;
  }
  bool gives(const Results& results, int i, int steps) const {
    return models[std::size_t(i) % models.size()].gives(results.floats("keep.out"), i, steps);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(many_waiting_runs, ManyRunsFixture)

BOOST_AUTO_TEST_CASE(two_hundred_runs_end_right_and_keep_all_devices_busy) {
  const std::vector<std::vector<double>> alone = seconds_alone();
  control->reset();
  Engine engine(options(kPace));
  std::mt19937 random(7);
  double work = 0;
  // One on each device holds the others until all have come, as if they had come in one moment.
  std::promise<void> gate;
  const auto opened = gate.get_future().share();
  std::atomic<std::uint32_t> held = 0;
  std::vector<Run> first;
  for (std::uint32_t d = 0; d < kDevices; ++d) {
    const int i = 1003 + 4 * int(d);
    work += alone[std::size_t(i) % models.size()][0];
    first.push_back(begin(engine, i, 1, {.observer = [&, opened](const Event& e) {
                            if (e.kind != Event::Kind::node_started || e.node != "loop") return;
                            ++held;
                            opened.wait_for(std::chrono::minutes(2));
                          }}));
  }
  BOOST_TEST_REQUIRE(test::comes_about([&] { return held >= kDevices; }),
                     "of the first runs " << held << " have begun");
  std::vector<std::pair<Run, int>> runs;
  for (int i = 0; i < kRuns; ++i) {
    const int steps = 1 + int(random() % kMostSteps);
    work += alone[std::size_t(i) % models.size()][std::size_t(steps) - 1];
    runs.emplace_back(begin(engine, i, steps), steps);
  }
  gate.set_value();
  for (const auto& [run, steps] : runs) Run(run).wait();
  double last = 0;
  for (std::uint32_t d = 0; d < kDevices; ++d) {
    last = std::max(last, control->now(d));
    BOOST_TEST_MESSAGE("fake:" << d << " " << control->now(d));
    BOOST_TEST(control->peak_bytes(d) <= options().budgets.at("fake").bytes);
    BOOST_TEST(control->freed_in_use(d) == 0u);
  }
  const double bound = work / kDevices;
  BOOST_TEST_MESSAGE("took " << last << " s, the bound is " << bound << " s");
  BOOST_TEST((kPace == 0 || last <= 1.15 * bound),
             "took " << last << " s, the bound is " << bound << " s");
  for (int i = 0; i < kRuns; ++i)
    BOOST_TEST(gives(runs[std::size_t(i)].first.wait(), i, runs[std::size_t(i)].second),
               "run " << i << " gave what is not its result");
}

// Cancels, pauses with and without release, priorities that preempt, faults and another program,
// all in any order: each run gives its result, or is cancelled because somebody did so, or fails
// because a device or the other program left it nothing.
BOOST_AUTO_TEST_CASE(two_hundred_runs_that_are_disturbed_all_end_as_they_should) {
  EngineOptions o = options();
  o.degrade_after = 0;
  Engine engine(o);
  std::mt19937 random(11);
  struct Begun {
    Run run;
    int steps;
    bool is_cancelled;
  };
  std::vector<Begun> runs;
  std::jthread other_program([&](std::stop_token stop) {
    std::mt19937 any(3);
    while (!stop.stop_requested()) {
      for (std::uint32_t d = 0; d < kDevices; ++d)
        control->set_foreign_bytes(d, any() % (850 << 10));
      std::this_thread::yield();
    }
    for (std::uint32_t d = 0; d < kDevices; ++d) control->set_foreign_bytes(d, 0);
  });
  int faults = 0;
  for (int i = 0; i < kRuns; ++i) {
    const int steps = 1 + int(random() % 10);
    Run run = begin(engine, i, steps, {.priority = int(random() % 3)});
    const bool is_cancelled = random() % 5 == 0;
    if (random() % 4 == 0) run.pause();
    if (random() % 4 == 0) run.pause_and_release();
    if (is_cancelled) run.cancel();
    if (random() % 25 == 0) {
      control->fail_launch(random() % kDevices, 1 + random() % 20);
      ++faults;
    }
    runs.push_back({std::move(run), steps, is_cancelled});
    if (random() % 3 == 0) runs[random() % runs.size()].run.resume();
  }
  for (Begun& begun : runs) begun.run.resume();
  int failed = 0;
  for (int i = 0; i < kRuns; ++i) {
    Begun& begun = runs[std::size_t(i)];
    try {
      BOOST_TEST(gives(begun.run.wait(), i, begun.steps),
                 "run " << i << " gave what is not its result");
    } catch (const EngineError& error) {
      if (error.code() == HEDDLE_CANCELLED) {
        BOOST_TEST(begun.is_cancelled, "run " << i << " was cancelled by nobody");
      } else {
        ++failed;
        // A device has failed it, or the other program has taken what it needs in every attempt.
        BOOST_TEST((error.code() == HEDDLE_IO || error.code() == HEDDLE_OUT_OF_MEMORY),
                   error.what());
        BOOST_TEST_MESSAGE(error.what());
      }
    }
  }
  BOOST_TEST((failed == 0 || faults > 0));
  for (std::uint32_t d = 0; d < kDevices; ++d) BOOST_TEST(control->freed_in_use(d) == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
