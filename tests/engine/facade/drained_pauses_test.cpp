// Devices that are drained under runs that stand still: a pause then gives back what the run holds,
// and the run goes on later where there is room for it.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "heddle/abi/base.h"
#include "heddle/engine.h"
#include "tests/engine/facade/stepped_runs.h"
#include "tests/support/comes_about.h"

using namespace heddle;
using test::kSteps, test::Steps;

namespace {

constexpr std::chrono::milliseconds kNoTime{0}, kDrainTime{60'000};
constexpr const char* kDrained = "fake:0";

struct DrainedFixture : test::SteppedRuns {
  Engine engine{options({"fake:0", "fake:1"})};
  std::atomic<Run*> run{nullptr};
  std::atomic<int> paused{0};  // so often

  void pause() {
    begun().pause();
    ++paused;
  }
  void await_pause(int which) const {
    BOOST_TEST_REQUIRE(test::comes_about([&] { return paused >= which; }),
                       "the run was paused " << paused << " times, not " << which);
  }
  Run& begun() {
    if (!test::comes_about([&] { return run != nullptr; }))
      throw std::runtime_error("the test does not say which run it has begun");
    return *run;
  }
  Run begin_on_first(Observer observer) {
    engine.disable("fake:1");
    Run one = begin(engine, a, 1, {.observer = std::move(observer)});
    engine.enable("fake:1");
    return one;
  }
  void check_drained() const {
    BOOST_TEST(engine.devices().at(0).service == "drained");
    BOOST_TEST(engine.devices().at(0).memory.taken == 0u);
    BOOST_TEST(control->used_bytes(0) == 0u);
    BOOST_TEST(control->contexts(0) == 0u);
    BOOST_TEST(control->freed_in_use(0) == 0u);
  }
  static bool is_over(Run& one) { return one.wait_for(kNoTime); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(drained_pauses, DrainedFixture)

BOOST_AUTO_TEST_CASE(a_run_that_is_paused_between_two_steps_keeps_its_state_and_lets_go) {
  Steps steps;
  steps.at_step = [&](int step) {
    if (step == 5) pause();
  };
  Run one = begin_on_first(steps.observer());
  run = &one;
  steps.await(5);
  BOOST_REQUIRE(engine.drain(kDrained, kDrainTime));
  check_drained();
  BOOST_TEST(!is_over(one));
  BOOST_TEST(steps.now() == 5);
  one.resume();
  BOOST_TEST((loop(one.wait()) == whole(a, 1)));
  BOOST_TEST(steps.devices == (std::vector<std::string>{"fake:0", "fake:1"}),
             boost::test_tools::per_element());
  BOOST_TEST(steps.now() == kSteps);  // none was taken twice
}

BOOST_AUTO_TEST_CASE(a_run_that_is_paused_while_its_device_drains_lets_go) {
  Steps steps;
  std::atomic<bool> drains{false};
  steps.at_step = [&](int step) {
    if (step != 5) return;
    test::comes_about([&] { return drains.load(); });  // else the drain below fails
    pause();
  };
  Run one = begin_on_first(steps.observer());
  run = &one;
  steps.await(5);
  BOOST_TEST(!engine.drain(kDrained, kNoTime));
  drains = true;
  BOOST_REQUIRE(engine.drain(kDrained, kDrainTime));
  check_drained();
  BOOST_TEST(steps.now() == 5);
  one.resume();
  BOOST_TEST((loop(one.wait()) == whole(a, 1)));
  BOOST_TEST(steps.devices.size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_pause_on_other_devices_stays_as_it_is) {
  Steps steps;
  steps.at_step = [&](int step) {
    if (step == 5) pause();
  };
  Run one = begin_on_first(steps.observer());
  run = &one;
  await_pause(1);
  BOOST_TEST(engine.drain("fake:1", kDrainTime));
  BOOST_TEST(control->used_bytes(0) > 0u);
  one.resume();
  BOOST_TEST((loop(one.wait()) == whole(a, 1)));
  BOOST_TEST(steps.devices.size() == 1u);
}

// One that a drain has made to let go once is as free as any afterwards.
BOOST_AUTO_TEST_CASE(a_later_pause_elsewhere_holds_what_it_has) {
  Steps steps;
  steps.at_step = [&](int step) {
    if (step == 5 || step == 9) pause();
  };
  Run one = begin_on_first(steps.observer());
  run = &one;
  steps.await(5);
  BOOST_REQUIRE(engine.drain(kDrained, kDrainTime));
  one.resume();
  await_pause(2);
  BOOST_TEST(control->used_bytes(1) > 0u);
  one.resume();
  BOOST_TEST((loop(one.wait()) == whole(a, 1)));
  BOOST_TEST(steps.devices.size() == 2u);
}

BOOST_AUTO_TEST_CASE(without_another_device_it_goes_on_when_the_drained_one_is_enabled) {
  Steps steps;
  steps.at_step = [&](int step) {
    if (step == 5) pause();
  };
  Run one = begin_on_first(steps.observer());
  run = &one;
  engine.disable("fake:1");
  steps.await(5);
  BOOST_REQUIRE(engine.drain(kDrained, kDrainTime));
  engine.enable(kDrained);
  one.resume();
  BOOST_TEST((loop(one.wait()) == whole(a, 1)));
  BOOST_TEST(steps.devices == (std::vector<std::string>{"fake:0", "fake:0"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(it_fails_when_it_is_resumed_and_no_device_is_left) {
  Steps steps;
  steps.at_step = [&](int step) {
    if (step == 5) pause();
  };
  Run one = begin_on_first(steps.observer());
  run = &one;
  engine.disable("fake:1");
  steps.await(5);
  BOOST_REQUIRE(engine.drain(kDrained, kDrainTime));
  one.resume();
  const std::string text = test::engine_refusal([&] { one.wait(); });
  BOOST_TEST(text.find("no device is left to run on") != std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(a_run_that_let_go_is_cancelled) {
  Steps steps;
  steps.at_step = [&](int step) {
    if (step == 5) pause();
  };
  Run one = begin_on_first(steps.observer());
  run = &one;
  steps.await(5);
  BOOST_REQUIRE(engine.drain(kDrained, kDrainTime));
  one.cancel();
  BOOST_CHECK_THROW(one.wait(), EngineError);
  BOOST_TEST(steps.now() == 5);
}

// A chain of two loops, of which the second keeps no state. What is done at the events of a node
// comes from the test.
struct DrainedChain {
  std::mutex mutex;
  std::map<std::string, std::vector<std::string>> devices;  // by node, of its calls
  std::map<std::string, int> steps;
  std::function<void(const Event&)> at;

  Observer observer() {
    return [this](const Event& e) {
      {
        const std::lock_guard lock(mutex);
        if (e.kind == Event::Kind::node_started)
          devices[std::string(e.node)].emplace_back(e.device);
        if (e.kind == Event::Kind::node_progress) ++steps[std::string(e.node)];
      }
      at(e);
    };
  }
  Run begin(DrainedFixture& f) {
    f.engine.disable("fake:1");
    const std::string path = (f.folder / "a.safetensors").string();
    Run one = f.engine.start(
        f.engine.parse(test::workflow(
            {{"load",
              (R"({"class_type": "test.load", "inputs": {"path": ")" + path + R"("}})").c_str()},
             {"first", R"({"class_type": "test.planned_loop",
                           "inputs": {"model": ["load", 0], "width": 80, "steps": 3}})"},
             {"second", R"({"class_type": "test.loop",
                            "inputs": {"model": ["load", 0], "x": ["first", 0], "steps": 9}})"},
             {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["second", 0]}})"}})),
        {.observer = observer(), .fetch = {"keep.out"}});
    f.engine.enable("fake:1");
    return one;
  }
};

// What it has made goes to host memory, and is not made again.
BOOST_AUTO_TEST_CASE(a_run_that_is_paused_between_two_nodes_drops_what_it_has_there) {
  std::vector<float> expected;
  for (const bool is_paused : {false, true}) {
    engine.enable("fake");
    engine.unload();  // so that nothing is found in the cache
    DrainedChain chain;
    run = nullptr;
    chain.at = [&](const Event& e) {
      if (!is_paused || e.kind != Event::Kind::node_done || e.node != "first") return;
      pause();
    };
    Run one = chain.begin(*this);
    run = &one;
    if (is_paused) {
      await_pause(1);
      BOOST_REQUIRE(engine.drain(kDrained, kDrainTime));
      check_drained();
      BOOST_TEST(!is_over(one));
      one.resume();
    }
    const std::vector<float> got = loop(one.wait());
    if (!is_paused) expected = got;
    BOOST_TEST((got == expected));
    BOOST_TEST(chain.devices["first"].size() == 1u);
    BOOST_TEST(chain.steps["first"] == 3);
    BOOST_TEST(chain.devices["second"].back() == (is_paused ? "fake:1" : "fake:0"));
  }
}

BOOST_AUTO_TEST_CASE(a_node_that_keeps_no_state_ends_first) {
  DrainedChain chain;
  std::atomic<int> at{0};
  chain.at = [&](const Event& e) {
    if (e.kind != Event::Kind::node_progress || e.node != "second" || ++at != 4) return;
    pause();
  };
  Run one = chain.begin(*this);
  run = &one;
  await_pause(1);
  BOOST_REQUIRE(engine.drain(kDrained, kDrainTime));
  check_drained();
  BOOST_TEST(at == 9);
  one.resume();
  one.wait();
  BOOST_TEST(at == 9);
  BOOST_TEST(chain.devices["second"].size() == 1u);
}

BOOST_AUTO_TEST_CASE(the_c_interface_drains_under_a_paused_run) {
  const std::string plugins = HEDDLE_PLUGINS_DIR, samples = HEDDLE_SAMPLE_PLUGINS_DIR;
  const char* devices[] = {"fake:0", "fake:1"};
  const char* more[] = {samples.c_str(), test::kFakePlugin};
  const heddle_option of_fake[] = {{"fake", R"({"memory": 1048576})"}};
  heddle_engine_options o{};
  o.size = sizeof o;
  o.default_plugin_dir = plugins.c_str();
  o.plugin_dirs = more;
  o.plugin_dir_count = 2;
  o.devices = devices;
  o.device_count = 2;
  o.device_options = of_fake;
  o.device_option_count = 1;
  o.reference_kernels = 1;
  heddle_engine* c_engine = nullptr;
  char* text = nullptr;
  BOOST_REQUIRE(heddle_engine_make(&o, &c_engine, &text) == 0);
  heddle_workflow* flow = nullptr;
  const std::string path = (folder / "a.safetensors").string();
  const std::string json = test::workflow(
      {{"load", (R"({"class_type": "test.load", "inputs": {"path": ")" + path + R"("}})").c_str()},
       {"loop", R"({"class_type": "test.planned_loop",
                    "inputs": {"model": ["load", 0], "width": 80, "steps": 40, "start": 1}})"},
       {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["loop", 0]}})"}});
  BOOST_REQUIRE(heddle_engine_parse(c_engine, json.c_str(), "w", &flow, &text) == 0);
  BOOST_REQUIRE(heddle_workflow_place(flow, "loop", "fake", &text) == 0);
  struct Seen {
    std::atomic<heddle_run*> run{nullptr};
    std::atomic<int> steps{0};
  } seen;
  const char* fetched[] = {"keep.out"};
  heddle_start_options start{};
  start.size = sizeof start;
  start.fetch = fetched;
  start.fetch_count = 1;
  start.observer_user = &seen;
  start.observer = [](void* user, const heddle_run_event* e) {
    Seen& seen = *static_cast<Seen*>(user);
    if (e->kind != HEDDLE_NODE_PROGRESS) return;
    if (!test::comes_about([&] { return seen.run != nullptr; })) return;
    if (seen.steps + 1 == 5) heddle_run_pause(seen.run);
    ++seen.steps;
  };
  heddle_run* c_run = nullptr;
  BOOST_REQUIRE(heddle_engine_start(c_engine, flow, &start, &c_run, &text) == 0);
  seen.run = c_run;
  BOOST_TEST_REQUIRE(test::comes_about([&] { return seen.steps >= 5; }),
                     "the run is at step " << seen.steps);
  BOOST_TEST(heddle_engine_drain(c_engine, kDrained, kDrainTime.count(), &text) == 0);
  BOOST_TEST(heddle_run_wait(c_run, 0, nullptr, &text) == HEDDLE_STILL_RUNNING);
  BOOST_TEST(seen.steps == 5);
  heddle_run_resume(c_run);
  heddle_results* results = nullptr;
  BOOST_REQUIRE(heddle_run_wait(c_run, -1, &results, &text) == 0);
  std::vector<float> got(test::kWide);
  BOOST_TEST(heddle_results_floats(results, "keep.out", nullptr, got.data(), got.size(), &text) ==
             0);
  BOOST_TEST((got == whole(a, 1)));
  heddle_results_free(results);
  heddle_run_free(c_run);
  heddle_workflow_free(flow);
  heddle_engine_free(c_engine);
}

BOOST_AUTO_TEST_SUITE_END()
