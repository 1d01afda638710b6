// Runs that give their memory back between two steps and go on later: paused by their owner, or
// because another of a higher priority needs the devices.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <mutex>
#include <thread>

#include "heddle/abi/base.h"
#include "tests/engine/facade/stepped_runs.h"
#include "tests/support/comes_about.h"
#include "tests/support/golden_files.h"

using namespace heddle;
using test::kSteps, test::Steps;

BOOST_FIXTURE_TEST_SUITE(released_runs, test::SteppedRuns)

BOOST_AUTO_TEST_CASE(a_released_run_holds_nothing_and_another_takes_its_place) {
  Engine engine(options({"fake:0"}));
  Steps first, second;
  std::atomic<Run*> run{nullptr};
  first.at_step = [&](int step) {
    if (step != 5) return;
    if (!test::comes_about([&] { return run != nullptr; })) return;
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

BOOST_AUTO_TEST_CASE(a_released_run_leaves_a_checkpoint_of_where_it_is) {
  Engine engine(options({"fake:0"}));
  Steps first, second;
  std::atomic<Run*> run{nullptr};
  std::atomic<int> written{0};
  first.at_step = [&](int step) {
    if (step != 5) return;
    if (!test::comes_about([&] { return run != nullptr; })) return;
    run.load()->pause_and_release();
  };
  StartOptions o;
  o.checkpoint = folder / "run.checkpoint";
  o.checkpoint_every = 1000;  // not before
  o.observer = [&written, tell = first.observer()](const Event& e) {
    tell(e);
    if (e.kind == Event::Kind::checkpoint_written) ++written;
  };
  Run one = begin(engine, a, 1, o);
  run = &one;
  BOOST_TEST_REQUIRE(test::comes_about([&] { return written > 0; }), "no checkpoint is written");
  BOOST_TEST(written == 1);
  BOOST_TEST(first.now() == 5);
  Engine other(options({"fake:0"}));
  Run rest = other.resume(RunCheckpoint::load(o.checkpoint),
                          {.observer = second.observer(), .fetch = {"keep.out"}});
  BOOST_TEST((loop(rest.wait()) == whole(a, 1)));
  BOOST_TEST(second.now() == kSteps - 5);
}

BOOST_AUTO_TEST_CASE(it_goes_on_on_another_device) {
  Engine engine(options({"fake:0", "fake:1"}));
  Steps first, second;
  std::atomic<Run*> run{nullptr};
  first.at_step = [&](int step) {
    if (step != 7) return;
    if (!test::comes_about([&] { return run != nullptr; })) return;
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
    if (step == 1) test::comes_about([&] { return is_over.load(); });
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
    if (step == 3) test::comes_about([&] { return has_come.load(); });
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

// The third has its result, and waits for its turn to write with what the first needs to go on.
BOOST_AUTO_TEST_CASE(a_run_gives_way_to_one_that_it_writes_after) {
  EngineOptions o = options({"fake:0"});
  o.output_dir = folder.path();
  o.budgets["fake"] = 5 * test::kBytes / 2;  // for two runs
  Engine engine(o);
  const test::LayersFile c{"c", test::kWide, test::kDeep};
  folder.write("c.safetensors", c.bytes());
  Steps first, second, third;
  std::atomic<Run*> run{nullptr};
  std::atomic<bool> has_second_begun{false};
  first.at_step = [&](int step) {
    if (step != 5) return;
    if (!test::comes_about([&] { return run != nullptr && has_second_begun; })) return;
    run.load()->pause_and_release();
  };
  second.at_step = [&](int) { has_second_begun = true; };
  const auto save = [&](const test::LayersFile& model, Steps& steps, std::uint64_t after) {
    const std::string path = (folder / (model.name + ".safetensors")).string();
    return engine.start(
        engine.parse(test::workflow(
            {{"load",
              (R"({"class_type": "test.load", "inputs": {"path": ")" + path + R"("}})").c_str()},
             {"loop", R"({"class_type": "test.planned_loop",
                          "inputs": {"model": ["load", 0], "width": 80, "steps": 40}})"},
             {"save", R"({"class_type": "test.save", "inputs": {"value": ["loop", 0]}})"}})),
        {.observer = steps.observer(), .writes_after = after});
  };
  Run one = save(a, first, 0);
  run = &one;
  Run two = save(b, second, one.id());
  second.await(kSteps);
  Run three = save(c, third, two.id());
  third.await(kSteps);
  BOOST_TEST(first.now() == 5);
  one.resume();
  one.wait();
  two.wait();
  three.wait();
  const auto saved = [&](const char* file) {
    const std::string bytes = test::read_text((folder / file).string());
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    return values;
  };
  BOOST_TEST((saved("1") == whole(a, 0)));
  BOOST_TEST((saved("2") == whole(b, 0)));
  BOOST_TEST((saved("3") == whole(c, 0)));
}

BOOST_AUTO_TEST_CASE(one_of_the_same_priority_waits_as_before) {
  Engine engine(options({"fake:0"}));
  Steps first, second;
  std::atomic<bool> has_come{false};
  first.at_step = [&](int step) {
    if (step == 3) test::comes_about([&] { return has_come.load(); });
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
    if (!test::comes_about([&] { return run != nullptr; })) return;
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
    if (!test::comes_about([&] { return run != nullptr; })) return;
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
