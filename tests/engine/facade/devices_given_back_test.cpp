// A run that writes its files has nothing to do on devices any more: others begin there.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <thread>

#include "tests/engine/facade/stepped_runs.h"

using namespace heddle;

namespace {

struct Writing : test::SteppedRuns {
  Run write(Engine& engine, const test::LayersFile& model, double start, Observer observer) {
    const std::string path = (folder / (model.name + ".safetensors")).string();
    StartOptions o;
    o.observer = std::move(observer);
    o.inputs = {{"loop.start", start}};
    return engine.start(
        engine.parse(test::workflow(
            {{"load",
              (R"({"class_type": "test.load", "inputs": {"path": ")" + path + R"("}})").c_str()},
             {"loop", R"({"class_type": "test.planned_loop",
                          "inputs": {"model": ["load", 0], "width": 80, "steps": 40}})"},
             {"save", R"({"class_type": "test.save", "inputs": {"value": ["loop", 0]}})"}})),
        std::move(o));
  }
};

// Until then, or for a minute.
bool comes_about(const std::atomic<bool>& what) {
  for (int tries = 0; tries < 6000 && !what; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return what;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(devices_given_back, Writing)

BOOST_AUTO_TEST_CASE(another_run_begins_while_one_writes) {
  EngineOptions o = options({"fake:0"});
  o.output_dir = folder / "output";
  Engine engine(o);
  std::atomic<bool> is_begun{false}, was_beside{false};
  Run first = write(engine, a, 1, [&](const Event& e) {
    if (e.kind == Event::Kind::node_started && e.node == "save") was_beside = comes_about(is_begun);
  });
  // It does not fit beside the first while that computes.
  std::atomic<int> steps{0};
  Run second = write(engine, b, 2, [&](const Event& e) {
    if (e.kind != Event::Kind::node_progress) return;
    ++steps;
    is_begun = true;
  });
  first.wait();
  BOOST_TEST(was_beside);
  second.wait();
  BOOST_TEST(steps == test::kSteps);
}

// The loop of the next is as it is alone, to the bit.
BOOST_AUTO_TEST_CASE(what_follows_is_computed_as_ever) {
  EngineOptions o = options({"fake:0"});
  o.output_dir = folder / "output";
  Engine engine(o);
  std::vector<Run> runs;
  for (int i = 0; i < 4; ++i) runs.push_back(write(engine, i % 2 == 0 ? a : b, i, {}));
  Run last = begin(engine, a, 7);
  for (Run& run : runs) run.wait();
  BOOST_TEST((loop(last.wait()) == whole(a, 7)));
}

BOOST_AUTO_TEST_SUITE_END()
