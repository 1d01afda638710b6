// Runs that give their memory back between two steps and go on later: paused by their owner, or
// because another of a higher priority needs the devices.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "heddle/abi/base.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/layers_file.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;

namespace {

constexpr int kWide = 80, kDeep = 3, kSteps = 40;
constexpr std::uint64_t kBytes = std::uint64_t{kDeep} * kWide * kWide * sizeof(float);

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
    changed.wait(lock, [&] { return steps >= step; });
  }
  int now() {
    const std::lock_guard lock(mutex);
    return steps;
  }
};

struct ReleasedFixture {
  test::FakeControl control;
  test::TemporaryFolder folder;
  const test::LayersFile a{"a", kWide, kDeep}, b{"b", kWide, kDeep};

  ReleasedFixture() {
    for (const test::LayersFile& model : {a, b})
      folder.write(model.name + ".safetensors", model.bytes());
  }
  // One run on each device, and no second one.
  static EngineOptions options(std::vector<std::string> devices) {
    EngineOptions o = test::fake_engine_options(std::move(devices), R"({"memory": 1048576})");
    o.budgets["fake"] = 2 * kBytes;
    o.reserves["fake"] = std::uint64_t{0};
    return o;
  }
  Run begin(Engine& engine, const test::LayersFile& model, double start, StartOptions o = {}) {
    const std::string path = (folder / (model.name + ".safetensors")).string();
    o.fetch = {"keep.out"};
    o.inputs = {{"loop.start", start}};
    return engine.start(
        engine.parse(test::workflow(
            {{"load",
              (R"({"class_type": "test.load", "inputs": {"path": ")" + path + R"("}})").c_str()},
             {"loop", R"({"class_type": "test.planned_loop",
                          "inputs": {"model": ["load", 0], "width": 80, "steps": 40}})"},
             {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["loop", 0]}})"}})),
        std::move(o));
  }
  static std::vector<float> loop(const Results& results) { return results.floats("keep.out"); }
  // Without a stop: what every run has to give, to the bit.
  std::vector<float> whole(const test::LayersFile& model, double start) {
    Engine engine(options({"fake:0"}));
    std::vector<float> values = loop(begin(engine, model, start).wait());
    BOOST_TEST(model.gives(values, start, kSteps));
    return values;
  }
  static void await_nothing_on(const Engine& engine, std::size_t device) {
    while (engine.devices().at(device).memory.taken != 0) std::this_thread::yield();
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(released_runs, ReleasedFixture)

BOOST_AUTO_TEST_CASE(a_released_run_holds_nothing_and_another_takes_its_place) {
  Engine engine(options({"fake:0"}));
  Steps first, second;
  std::atomic<Run*> run{nullptr};
  first.at_step = [&](int step) {
    if (step != 5) return;
    while (run == nullptr) std::this_thread::yield();
    run.load()->pause_and_release();
  };
  Run one = begin(engine, a, 1, {.observer = first.observer()});
  run = &one;
  first.await(5);
  await_nothing_on(engine, 0);
  BOOST_TEST(first.now() == 5);
  // It did not fit beside the first.
  const auto other = loop(begin(engine, b, 2, {.observer = second.observer()}).wait());
  BOOST_TEST((other == whole(b, 2)));
  BOOST_TEST(!one.wait_for(std::chrono::milliseconds(0)));
  BOOST_TEST(first.now() == 5);
  one.resume();
  BOOST_TEST((loop(one.wait()) == whole(a, 1)));
  BOOST_TEST(first.now() == kSteps);  // none was taken twice
  BOOST_TEST(first.devices.size() == 2u);
}

BOOST_AUTO_TEST_CASE(it_goes_on_on_another_device) {
  Engine engine(options({"fake:0", "fake:1"}));
  Steps first, second;
  std::atomic<Run*> run{nullptr};
  first.at_step = [&](int step) {
    if (step != 7) return;
    while (run == nullptr) std::this_thread::yield();
    run.load()->pause_and_release();
  };
  Run one = begin(engine, a, 1, {.observer = first.observer(), .among_many = true});
  run = &one;
  first.await(7);
  await_nothing_on(engine, 0);
  await_nothing_on(engine, 1);
  // Another has the device meanwhile, and keeps it until the first is over.
  std::atomic<bool> is_over{false};
  second.at_step = [&](int step) {
    if (step == 1)
      while (!is_over) std::this_thread::yield();
  };
  Run two = begin(engine, b, 2, {.observer = second.observer(), .among_many = true});
  second.await(1);
  one.resume();
  BOOST_TEST((loop(one.wait()) == whole(a, 1)));
  is_over = true;
  BOOST_TEST((loop(two.wait()) == whole(b, 2)));
  BOOST_TEST(first.devices.size() == 2u);
  BOOST_TEST(first.devices.at(0) != first.devices.at(1));
  BOOST_TEST(first.now() == kSteps);
}

BOOST_AUTO_TEST_CASE(a_run_of_higher_priority_takes_the_device_at_the_next_step) {
  Engine engine(options({"fake:0"}));
  Steps first, second;
  std::atomic<int> first_was_at{0};
  std::atomic<bool> has_come{false};
  first.at_step = [&](int step) {
    if (step == 3)
      while (!has_come) std::this_thread::yield();
  };
  second.at_step = [&](int) { first_was_at = first.now(); };
  Run low = begin(engine, a, 1, {.observer = first.observer()});
  first.await(3);
  Run high = begin(engine, b, 2, {.observer = second.observer(), .priority = 1});
  has_come = true;
  BOOST_TEST((loop(high.wait()) == whole(b, 2)));
  BOOST_TEST(first_was_at == 3);  // to the end of the other
  BOOST_TEST((loop(low.wait()) == whole(a, 1)));
  BOOST_TEST(first.devices.size() == 2u);
  BOOST_TEST(first.now() == kSteps);
  BOOST_TEST(second.devices.size() == 1u);
}

BOOST_AUTO_TEST_CASE(one_of_the_same_priority_waits_as_before) {
  Engine engine(options({"fake:0"}));
  Steps first, second;
  std::atomic<bool> has_come{false};
  first.at_step = [&](int step) {
    if (step == 3)
      while (!has_come) std::this_thread::yield();
  };
  Run one = begin(engine, a, 1, {.observer = first.observer(), .priority = 1});
  first.await(3);
  Run two = begin(engine, b, 2, {.observer = second.observer(), .priority = 1});
  has_come = true;
  BOOST_TEST((loop(two.wait()) == whole(b, 2)));
  BOOST_TEST((loop(one.wait()) == whole(a, 1)));
  BOOST_TEST(first.devices.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_released_run_is_cancelled) {
  Engine engine(options({"fake:0"}));
  Steps steps;
  std::atomic<Run*> run{nullptr};
  steps.at_step = [&](int step) {
    while (run == nullptr) std::this_thread::yield();
    if (step == 2) run.load()->pause_and_release();
  };
  Run one = begin(engine, a, 1, {.observer = steps.observer()});
  run = &one;
  steps.await(2);
  await_nothing_on(engine, 0);
  one.cancel();
  int code = 0;
  try {
    one.wait();
  } catch (const EngineError& error) {
    code = error.code();
  }
  BOOST_TEST(code == HEDDLE_CANCELLED);
  BOOST_TEST(steps.now() == 2);
}

BOOST_AUTO_TEST_CASE(a_run_that_is_released_before_it_begins_goes_on_as_any) {
  Engine engine(options({"fake:0"}));
  Run one = begin(engine, a, 1);
  one.pause_and_release();
  one.resume();
  BOOST_TEST((loop(one.wait()) == whole(a, 1)));
}

// A sink that has done its work does not do it twice, and nodes without steps end first.
BOOST_AUTO_TEST_CASE(what_is_done_is_not_done_again) {
  EngineOptions o = options({"fake:0"});
  o.cache_bytes = 1;  // so that nothing is found there
  Engine engine(o);
  std::map<std::string, int> begun;
  std::atomic<Run*> run{nullptr};
  std::mutex mutex;
  const auto observe = [&](const Event& e) {
    if (e.kind == Event::Kind::node_started) {
      const std::lock_guard lock(mutex);
      ++begun[std::string(e.node)];
    }
    if (e.kind != Event::Kind::node_progress || e.fraction < 0.5) return;
    while (run == nullptr) std::this_thread::yield();
    run.load()->pause_and_release();
    run.load()->resume();
  };
  const std::string path = (folder / "a.safetensors").string();
  Run one = engine.start(
      engine.parse(test::workflow(
          {{"load",
            (R"({"class_type": "test.load", "inputs": {"path": ")" + path + R"("}})").c_str()},
           {"before", R"({"class_type": "test.planned_loop",
                          "inputs": {"model": ["load", 0], "width": 80, "steps": 3}})"},
           {"kept", R"({"class_type": "test.keep", "inputs": {"value": ["before", 0]}})"},
           {"text", R"({"class_type": "PreviewAny", "inputs": {"source": "shown"}})"},
           {"loop", R"({"class_type": "test.planned_loop",
                        "inputs": {"model": ["load", 0], "width": 80, "steps": 40, "start": 2}})"},
           {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["loop", 0]}})"}})),
      {.observer = observe, .fetch = {"keep.out", "kept.out"}});
  run = &one;
  const Results results = one.wait();
  BOOST_TEST(a.gives(results.floats("keep.out"), 2, kSteps));
  BOOST_TEST(a.gives(results.floats("kept.out"), 0, 3));
  BOOST_TEST(begun["loop"] > 2);
  BOOST_TEST(begun["text"] == 1);
  BOOST_TEST(results.ui().find("shown") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
