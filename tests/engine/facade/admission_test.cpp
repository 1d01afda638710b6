// Runs that do not fit beside each other: they wait, and say for what.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "heddle/abi/base.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/layers_file.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;

namespace {

constexpr int kWidth = 80, kLayers = 3;
constexpr std::uint64_t kWeights = std::uint64_t{kLayers} * kWidth * kWidth * sizeof(float);

// Opens once, and stays open.
struct Gate {
  std::promise<void> open;
  std::shared_future<void> opened = open.get_future().share();
};

// What a run tells, to be waited for.
struct Told {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> waiting;  // texts
  std::vector<std::string> devices;  // of nodes
  Observer observer(Gate* gate = nullptr) {
    return [this, gate](const Event& e) {
      if (e.kind == Event::Kind::run_waiting) {
        const std::lock_guard lock(mutex);
        waiting.push_back(std::string(e.device) + " " + std::to_string(e.bytes) + " " +
                          std::string(e.text));
        changed.notify_all();
      }
      if (e.kind != Event::Kind::node_started || e.node != "loop") return;
      {
        const std::lock_guard lock(mutex);
        devices.emplace_back(e.device);
        changed.notify_all();
      }
      if (gate != nullptr) gate->opened.wait_for(std::chrono::minutes(2));
    };
  }
  void await_waiting(std::size_t count = 1) {
    std::unique_lock lock(mutex);
    BOOST_TEST_REQUIRE(
        changed.wait_for(lock, std::chrono::minutes(1), [&] { return waiting.size() >= count; }),
        "the run waits " << waiting.size() << " times, not " << count);
  }
  void await_start() {
    std::unique_lock lock(mutex);
    BOOST_TEST_REQUIRE(
        changed.wait_for(lock, std::chrono::minutes(1), [&] { return !devices.empty(); }),
        "the run does not begin");
  }
};

struct AdmissionFixture {
  test::FakeControl control;
  test::TemporaryFolder folder;
  const test::LayersFile a{"a", kWidth, kLayers}, b{"b", kWidth, kLayers}, c{"c", kWidth, kLayers};
  double start = 0;

  AdmissionFixture() {
    for (const test::LayersFile& model : {a, b, c})
      folder.write(model.name + ".safetensors", model.bytes());
  }
  static EngineOptions options(std::vector<std::string> devices, std::uint64_t budget) {
    EngineOptions o = test::fake_engine_options(std::move(devices), R"({"memory": 1048576})");
    o.budgets["fake"] = budget;
    o.reserves["fake"] = std::uint64_t{0};
    return o;
  }
  std::string flow(const test::LayersFile& model) const {
    const std::string path = (folder / (model.name + ".safetensors")).string();
    return test::workflow(
        {{"load",
          (R"({"class_type": "test.load", "inputs": {"path": ")" + path + R"("}})").c_str()},
         {"loop", R"({"class_type": "test.planned_loop",
                      "inputs": {"model": ["load", 0], "width": 80}})"},
         {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["loop", 0]}})"}});
  }
  Run begin(Engine& engine, const test::LayersFile& model, StartOptions o = {}) {
    o.fetch = {"keep.out"};
    o.inputs = {{"loop.start", start += 1}};
    return engine.start(engine.parse(flow(model)), std::move(o));
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(admission, AdmissionFixture)

BOOST_AUTO_TEST_CASE(runs_that_do_not_fit_wait_for_those_that_are_under_way) {
  Engine engine(options({"fake:0"}, 2 * kWeights));
  Gate gate;
  Told first, second, third;
  Run one = begin(engine, a, {.observer = first.observer(&gate)});
  first.await_start();
  Run two = begin(engine, b, {.observer = second.observer()});
  Run three = begin(engine, c, {.observer = third.observer()});
  second.await_waiting();
  const std::string number = std::to_string(one.id());
  BOOST_TEST(second.waiting.at(0).starts_with("fake:0 "), second.waiting.at(0));
  BOOST_TEST(second.waiting.at(0).find(" of 150.0 KiB are free, run " + number + " holds ") !=
                 std::string::npos,
             second.waiting.at(0));
  third.await_waiting();
  BOOST_TEST(second.devices.empty());
  gate.open.set_value();
  BOOST_TEST(a.gives(one.wait().floats("keep.out"), 1));
  BOOST_TEST(b.gives(two.wait().floats("keep.out"), 2));
  BOOST_TEST(c.gives(three.wait().floats("keep.out"), 3));
  BOOST_TEST(control->peak_bytes(0) <= 2 * kWeights);
  BOOST_TEST(control->weights(0) == 3u * kLayers);  // nothing was streamed
}

BOOST_AUTO_TEST_CASE(runs_of_one_model_share_its_weights_and_need_not_wait) {
  Engine engine(options({"fake:0"}, 2 * kWeights));
  Gate gate;
  Told first, second;
  Run one = begin(engine, a, {.observer = first.observer(&gate)});
  first.await_start();
  Run two = begin(engine, a, {.observer = second.observer()});
  BOOST_TEST(a.gives(two.wait().floats("keep.out"), 2));
  BOOST_TEST(second.waiting.empty());
  gate.open.set_value();
  one.wait();
}

BOOST_AUTO_TEST_CASE(a_run_that_waits_is_cancelled_at_once_and_one_that_is_paused_is_passed_by) {
  Engine engine(options({"fake:0"}, 2 * kWeights));
  Gate gate;
  Told first, second, third, fourth;
  Run one = begin(engine, a, {.observer = first.observer(&gate)});
  first.await_start();
  Run two = begin(engine, b, {.observer = second.observer()});
  second.await_waiting();
  two.cancel();
  BOOST_CHECK_EXCEPTION(two.wait(), EngineError,
                        [](const EngineError& e) { return e.code() == HEDDLE_CANCELLED; });
  Run three = begin(engine, b, {.observer = third.observer()});
  third.await_waiting();
  three.pause();
  Run four = begin(engine, c, {.observer = fourth.observer()});
  fourth.await_waiting();
  gate.open.set_value();
  BOOST_TEST(c.gives(four.wait().floats("keep.out"), 4));
  BOOST_TEST(third.devices.empty());
  three.resume();
  BOOST_TEST(b.gives(three.wait().floats("keep.out"), 3));
  one.wait();
}

BOOST_AUTO_TEST_CASE(of_those_that_wait_the_highest_priority_begins_first) {
  Engine engine(options({"fake:0"}, 2 * kWeights));
  Gate gate, later;
  Told first, low, high;
  Run one = begin(engine, a, {.observer = first.observer(&gate)});
  first.await_start();
  Run two = begin(engine, b, {.observer = low.observer()});
  low.await_waiting();
  Run three = begin(engine, c, {.observer = high.observer(&later), .priority = 1});
  high.await_waiting();
  gate.open.set_value();
  high.await_start();
  BOOST_TEST(low.devices.empty());
  later.open.set_value();
  for (Run* run : {&one, &two, &three}) run->wait();
}

BOOST_AUTO_TEST_CASE(a_run_waits_for_what_another_program_holds_and_then_streams) {
  EngineOptions o = options({"fake:0"}, 1 << 20);
  o.budgets.clear();
  std::atomic<double> now = 0;
  o.clock = [&] { return now.load(); };
  Engine engine(o);
  control->set_foreign_bytes(0, (1 << 20) - (60 << 10));
  now = 3;  // the driver is asked every two seconds
  Told told;
  Run run = begin(engine, a, {.observer = told.observer(), .memory_wait_seconds = 30});
  told.await_waiting();
  BOOST_TEST(told.waiting.at(0).find("of which other programs leave 60.0 KiB") != std::string::npos,
             told.waiting.at(0));
  BOOST_TEST(!run.wait_for(std::chrono::milliseconds(300)));
  now = 34;
  BOOST_TEST(a.gives(run.wait().floats("keep.out"), 1));
  BOOST_TEST(control->weights(0) > unsigned(kLayers));  // streamed: made again in its second step

  // What comes free in time is taken.
  control->set_foreign_bytes(0, (1 << 20) - (60 << 10));
  engine.unload();
  now = 40;
  Run next = begin(engine, b, {.observer = told.observer(), .memory_wait_seconds = 30});
  told.await_waiting(2);
  const std::uint64_t made = control->weights(0);
  control->set_foreign_bytes(0, 0);
  now = 50;
  BOOST_TEST(b.gives(next.wait().floats("keep.out"), 2));
  BOOST_TEST(control->weights(0) - made == unsigned(kLayers));
}

BOOST_AUTO_TEST_CASE(a_run_that_waits_moves_to_a_device_that_has_become_idle) {
  Engine engine(options({"fake:0", "fake:1"}, 2 * kWeights));
  Gate gate, other;
  Told first, second, third;
  Run one = begin(engine, a, {.observer = first.observer(&gate), .among_many = true});
  first.await_start();
  Run two = begin(engine, b, {.observer = second.observer(&other), .among_many = true});
  second.await_start();
  BOOST_TEST(first.devices.at(0) != second.devices.at(0));
  Run three = begin(engine, c, {.observer = third.observer(), .among_many = true});
  third.await_waiting();
  // Whichever it was placed on, the other one's run ends.
  const bool is_behind_first = third.waiting.at(0).starts_with(first.devices.at(0));
  (is_behind_first ? other : gate).open.set_value();
  BOOST_TEST(c.gives(three.wait().floats("keep.out"), 3));
  BOOST_TEST(third.devices.at(0) == (is_behind_first ? second : first).devices.at(0));
  (is_behind_first ? gate : other).open.set_value();
  one.wait();
  two.wait();
}

// Little is known to be needed of host memory: the floor decides.
BOOST_AUTO_TEST_CASE(no_run_begins_beside_others_where_the_floor_of_host_memory_is_not_there) {
  const auto third_waits = [&](std::uint64_t floor) {
    EngineOptions o = options({"fake:0"}, 1 << 20);
    o.host_budget = std::uint64_t{256} << 20;
    o.host_floor = floor;
    Engine engine(o);
    Gate gate;
    Told first, second, third;
    Run one = begin(engine, a, {.observer = first.observer(&gate)});
    first.await_start();
    Run two = begin(engine, a, {.observer = second.observer(&gate)});
    second.await_start();
    Run three = begin(engine, a, {.observer = third.observer(&gate)});
    bool waits = false;
    {
      std::unique_lock lock(third.mutex);
      BOOST_TEST_REQUIRE(
          third.changed.wait_for(lock, std::chrono::minutes(1),
                                 [&] { return !third.waiting.empty() || !third.devices.empty(); }),
          "the third run neither waits nor begins");
      waits = third.devices.empty();
      if (waits) BOOST_TEST(third.waiting.at(0).starts_with("host "), third.waiting.at(0));
    }
    gate.open.set_value();
    for (Run* run : {&one, &two, &three}) run->wait();
    return waits;
  };
  BOOST_TEST(!third_waits(0));
  BOOST_TEST(!third_waits(std::uint64_t{80} << 20));
  BOOST_TEST(third_waits(std::uint64_t{100} << 20));
}

BOOST_AUTO_TEST_SUITE_END()
