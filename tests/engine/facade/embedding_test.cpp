// What a program gives an engine and takes from it: values by name, tensors of its own, its log,
// its memory; and many runs at once.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "heddle/abi/base.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/layers_file.h"
#include "tests/support/lent_tensor.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using test::engine_refusal;
using test::LentTensor;
using test::workflow;

namespace {

struct EmbeddingFixture {
  Engine engine{test::engine_options()};
  // The tensor x goes through a sink, and so does the sum 1 + 1.
  const std::string keep =
      workflow({{"x", R"({"class_type": "test.ramp", "inputs": {}})"},
                {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["x", 0]}})"}});
  const std::string sum =
      workflow({{"add", R"({"class_type": "test.add", "inputs": {"a": 1, "b": 1}})"},
                {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["add", 0]}})"}});

  Run start(const std::string& flow, std::map<std::string, InputValue> inputs,
            Observer observer = {}) {
    return engine.start(engine.parse(flow), {std::move(observer), {"keep.out"}, std::move(inputs)});
  }
  std::string refusal(const std::string& flow, std::map<std::string, InputValue> inputs) {
    return engine_refusal([&] { start(flow, std::move(inputs)).wait(); });
  }
};

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Three layers of 24 in a file, called step by step.
std::string steps_flow(const test::TemporaryFolder& folder, int steps) {
  const std::string path =
      folder.write("layers.safetensors", test::LayersFile{"layers", 24, 3}.bytes()).string();
  return workflow(
      {{"load", (R"({"class_type": "test.load", "inputs": {"path": ")" + path + R"("}})").c_str()},
       {"x", R"({"class_type": "test.ramp", "inputs": {"count": 24}})"},
       {"loop",
        (R"({"class_type": "test.loop", "inputs": {"model": ["load", 0], "x": ["x", 0], "steps": )" +
         std::to_string(steps) + "}}")
            .c_str()},
       {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["loop", 0]}})"}});
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(embedding, EmbeddingFixture)

BOOST_AUTO_TEST_CASE(numbers_and_texts_go_in_by_name_for_one_run) {
  BOOST_TEST(start(sum, {{"add.a", std::int64_t(40)}}).wait().text("keep.out") == "41");
  BOOST_TEST(start(sum, {{"add.a", 40.0}, {"test.add.b", "2"}}).wait().text("keep.out") == "42");
  BOOST_TEST(start(sum, {}).wait().text("keep.out") == "2");
  BOOST_TEST(start(sum, {{"keep.value", "a text where a link was"}}).wait().text("keep.out") ==
             "a text where a link was");
  BOOST_TEST(start(sum, {{"keep.value", true}}).wait().text("keep.out") == "true");
}

BOOST_AUTO_TEST_CASE(a_tensor_goes_in_without_a_copy_in_the_place_of_a_link_and_is_given_back) {
  LentTensor lent({2, 3}, {1, 2, 3, 4, 5, 6});
  {
    const Results results = start(keep, {{"keep.value", lent.lend()}}).wait();
    BOOST_TEST((results.shape("keep.out") == std::vector<std::int64_t>{2, 3}));
    BOOST_TEST((results.floats("keep.out") == std::vector<float>{1, 2, 3, 4, 5, 6}));
    BOOST_TEST(results.stages().size() == 1u);  // what made the link's value does not run
    BOOST_TEST(lent.given_back() == 0);         // the results hold it
    lent.values[0] = 7;
    BOOST_TEST(results.floats("keep.out").front() == 7);
  }
  BOOST_TEST(lent.given_back() == 1);
}

BOOST_AUTO_TEST_CASE(what_a_tensor_went_into_is_not_taken_from_the_cache) {
  for (const float first : {1.0f, 2.0f}) {
    LentTensor lent({1}, {first});
    BOOST_TEST(start(keep, {{"keep.value", lent.lend()}}).wait().floats("keep.out").front() ==
               first);
    BOOST_TEST(lent.given_back() == 1);
  }
}

BOOST_AUTO_TEST_CASE(a_record_of_tensors_goes_in_and_its_fields_come_out) {
  LentTensor samples({1, 2}, {3, 4}), mask({1}, {5});
  {
    const std::map<std::string, DLManagedTensor*> record{{"samples", samples.lend()},
                                                         {"mask", mask.lend()}};
    const Results results = start(keep, {{"keep.value", record}}).wait();
    BOOST_TEST((results.floats("keep.out", "samples") == std::vector<float>{3, 4}));
    BOOST_TEST((results.floats("keep.out", "mask") == std::vector<float>{5}));
  }
  BOOST_TEST(samples.given_back() == 1);
  BOOST_TEST(mask.given_back() == 1);
}

BOOST_AUTO_TEST_CASE(a_device_computes_with_a_tensor_that_was_given) {
  const test::TemporaryFolder folder;
  const std::string flow = steps_flow(folder, 2);
  std::vector<float> ramp(24);
  for (std::size_t i = 0; i < ramp.size(); ++i) ramp[i] = float(i);
  LentTensor lent({1, 1, 24}, ramp);
  const std::vector<float> made = start(flow, {}).wait().floats("keep.out");
  BOOST_TEST((start(flow, {{"loop.x", lent.lend()}}).wait().floats("keep.out") == made));
  BOOST_TEST(lent.given_back() == 1);
}

BOOST_AUTO_TEST_CASE(a_tensor_comes_out_as_a_copy_that_outlives_the_engine) {
  DLManagedTensor* tensor = nullptr;
  {
    Engine other(test::engine_options());
    const Results results =
        other.start(other.parse(keep), {{}, {"keep.out"}, {{"x.start", 5.0}}}).wait();
    tensor = results.tensor("keep.out");
    static_cast<float*>(tensor->dl_tensor.data)[0] = 50;
    BOOST_TEST(results.floats("keep.out").front() == 5);
  }
  const DLTensor& t = tensor->dl_tensor;
  BOOST_TEST(t.ndim == 3);
  BOOST_TEST((std::vector(t.shape, t.shape + 3) == std::vector<std::int64_t>{1, 1, 4}));
  BOOST_TEST((std::vector(t.strides, t.strides + 3) == std::vector<std::int64_t>{4, 4, 1}));
  BOOST_TEST(int(t.device.device_type) == int(HEDDLE_DL_CPU));
  BOOST_TEST((t.dtype.code == HEDDLE_DL_FLOAT && t.dtype.bits == 32 && t.dtype.lanes == 1));
  const auto* values = static_cast<const float*>(t.data);
  BOOST_TEST((std::vector(values, values + 4) == std::vector<float>{50, 6, 7, 8}));
  tensor->deleter(tensor);
}

BOOST_AUTO_TEST_CASE(an_input_that_is_not_there_is_refused_with_its_neighbours) {
  const std::string reason = refusal(sum, {{"add.aa", std::int64_t(1)}});
  BOOST_TEST(says(reason, "node 'add' (test.add) has no input 'aa'"), reason);
  BOOST_TEST(says(reason, "It has a, b."), reason);
  BOOST_TEST(says(refusal(sum, {{"nobody.a", true}}), "'nobody'"));
  BOOST_TEST(says(refusal(sum, {{"add", true}}), "say NODE.INPUT"));
  LentTensor lent({1}, {1});
  BOOST_TEST(says(refusal(sum, {{"keep.values", lent.lend()}}), "has no input 'values'"));
  BOOST_TEST(lent.given_back() == 1);
}

BOOST_AUTO_TEST_CASE(values_that_an_input_cannot_take_are_refused) {
  BOOST_TEST(says(refusal(sum, {{"add.a", "many"}}), "'add' (test.add), input 'a'"));
  BOOST_TEST(says(refusal(sum, {{"add.a", 0.0 / 0.0}}), "not a finite number"));
  BOOST_TEST(
      says(refusal(sum, {{"keep.value", static_cast<DLManagedTensor*>(nullptr)}}), "null pointer"));
  LentTensor lent({2}, {1, 2});
  const std::string reason = refusal(sum, {{"add.a", lent.lend()}});
  BOOST_TEST(says(reason, "expects INT, got a tensor f32 (2)"), reason);
  BOOST_TEST(says(reason, "'add' (test.add)"), reason);
  BOOST_TEST(lent.given_back() == 1);
}

BOOST_AUTO_TEST_CASE(tensors_of_other_types_devices_and_strides_are_refused_and_given_back) {
  const auto refused = [&](const std::function<void(DLTensor&)>& change) {
    LentTensor lent({2, 3}, {1, 2, 3, 4, 5, 6});
    change(lent.managed.dl_tensor);
    const std::string reason = refusal(keep, {{"keep.value", lent.lend()}});
    BOOST_TEST(lent.given_back() == 1);
    BOOST_TEST(says(reason, "node 'keep' (test.keep) / input 'value'"), reason);
    return reason;
  };
  const auto type = [&](DLDataType dtype) {
    return refused([&](DLTensor& t) { t.dtype = dtype; });
  };
  BOOST_TEST(says(type({HEDDLE_DL_FLOAT, 128, 1}), "code 2, 128 bits and 1 lanes"));
  BOOST_TEST(says(type({HEDDLE_DL_FLOAT, 32, 4}), "4 lanes"));
  BOOST_TEST(says(refused([](DLTensor& t) { t.device = {2, 1}; }), "device type 2, number 1"));
  std::int64_t columns[] = {1, 2};
  const std::string strided = refused([&](DLTensor& t) { t.strides = columns; });
  BOOST_TEST(says(strided, "strides (1, 2), row-major ones are (3, 1)"), strided);
  BOOST_TEST(says(refused([](DLTensor& t) { t.data = nullptr; }), "has no data"));
  BOOST_TEST(
      says(refused([](DLTensor& t) { t.byte_offset = 2; }), "multiple of its element's 4 bytes"));
  BOOST_TEST(says(refused([](DLTensor& t) { t.ndim = 9; }), "9 axes"));
  BOOST_TEST(says(refused([](DLTensor& t) { t.ndim = -1; }), "-1 axes"));
  std::int64_t negative[] = {2, -3};
  BOOST_TEST(says(refused([&](DLTensor& t) { t.shape = negative; }), "negative size -3"));
}

BOOST_AUTO_TEST_CASE(a_tensor_begins_at_its_byte_offset_and_may_say_its_strides) {
  LentTensor lent({2, 2}, {9, 1, 2, 3, 4});
  std::int64_t strides[] = {2, 1};
  lent.managed.dl_tensor.byte_offset = 4;
  lent.managed.dl_tensor.strides = strides;
  BOOST_TEST((start(keep, {{"keep.value", lent.lend()}}).wait().floats("keep.out") ==
              std::vector<float>{1, 2, 3, 4}));
}

BOOST_AUTO_TEST_CASE(every_event_says_its_run) {
  std::set<std::uint64_t> ids;
  for (int i = 0; i < 3; ++i) {
    std::set<std::uint64_t> reported;
    Run run = start(sum, {{"add.a", std::int64_t(100 + i)}},
                    [&](const Event& e) { reported.insert(e.run); });
    run.wait();
    BOOST_TEST((reported == std::set<std::uint64_t>{run.id()}));
    ids.insert(run.id());
  }
  BOOST_TEST(ids.size() == 3u);
  BOOST_TEST(ids.count(0) == 0u);
}

BOOST_AUTO_TEST_CASE(threads_start_runs_of_one_engine_at_once_with_inputs_of_their_own) {
  constexpr int kThreads = 6, kRuns = 8;
  std::vector<std::vector<float>> got(kThreads);
  std::atomic<int> given_back{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        const Workflow flow = engine.parse(keep);
        for (int r = 0; r < kRuns; ++r) {
          LentTensor lent({1}, {float(100 * t + r)});
          got[std::size_t(t)].push_back(
              engine.start(flow, {{}, {"keep.out"}, {{"keep.value", lent.lend()}}})
                  .wait()
                  .floats("keep.out")
                  .front());
          got[std::size_t(t)].push_back(
              engine.start(flow, {{}, {"keep.out"}, {{"x.start", double(t)}}})
                  .wait()
                  .floats("keep.out")
                  .front());
          given_back += lent.given_back();
        }
      });
  }
  for (int t = 0; t < kThreads; ++t)
    for (int r = 0; r < kRuns; ++r) {
      BOOST_TEST(got[std::size_t(t)][std::size_t(2 * r)] == float(100 * t + r));
      BOOST_TEST(got[std::size_t(t)][std::size_t(2 * r + 1)] == float(t));
    }
  BOOST_TEST(given_back == kThreads * kRuns);
}

// The third step's event is held until the run is paused; then another run of many more steps comes
// and goes.
BOOST_AUTO_TEST_CASE(a_pause_holds_at_the_next_step_until_the_run_is_resumed) {
  const test::TemporaryFolder folder;
  const std::string flow = steps_flow(folder, 10);
  std::mutex mutex;
  std::condition_variable changed;
  int steps = 0, steps_while_paused = 0;
  bool is_paused = false;
  Run run = start(flow, {}, [&](const Event& e) {
    if (e.kind != Event::Kind::node_progress) return;
    std::unique_lock lock(mutex);
    steps_while_paused += is_paused ? 1 : 0;
    if (++steps != 3) return;
    changed.notify_all();
    changed.wait_for(lock, std::chrono::minutes(1), [&] { return is_paused; });
  });
  {
    std::unique_lock lock(mutex);
    BOOST_TEST_REQUIRE(changed.wait_for(lock, std::chrono::minutes(1), [&] { return steps == 3; }),
                       "the run is at step " << steps);
    run.pause();
    is_paused = true;
    changed.notify_all();
  }
  LentTensor lent({1, 1, 24}, std::vector<float>(24, 1.0f));
  start(steps_flow(folder, 100), {{"loop.x", lent.lend()}}).wait();
  BOOST_TEST(!run.wait_for(std::chrono::milliseconds(0)));
  {
    const std::lock_guard lock(mutex);
    BOOST_TEST(steps == 3);
    is_paused = false;
    run.resume();
  }
  run.wait();
  BOOST_TEST(steps == 10);
  BOOST_TEST(steps_while_paused == 0);
}

BOOST_AUTO_TEST_CASE(plans_and_checks_go_by_the_inputs_that_a_run_would_be_given) {
  // Without a value for its input the node cannot run.
  const Workflow open =
      engine.parse(workflow({{"keep", R"({"class_type": "test.keep", "inputs": {}})"}}));
  BOOST_TEST(engine.check(open).errors.size() == 1u);
  LentTensor lent({2}, {1, 2});
  BOOST_TEST(engine.check(open, {{"keep.value", lent.lend()}}).errors.empty());
  BOOST_TEST(lent.given_back() == 1);
  BOOST_TEST(says(engine.plan(open, {{"keep.value", lent.lend()}}), "keep"));
  BOOST_TEST(says(engine.plan_json(open, {{"keep.value", lent.lend()}}), "keep"));
  BOOST_TEST(says(engine.plan_dot(open, {{"keep.value", lent.lend()}}), "keep"));
  BOOST_TEST(lent.given_back() == 4);
  const Workflow linked = engine.parse(keep);
  BOOST_TEST(says(engine.plan(linked), "test.ramp"));
  BOOST_TEST(!says(engine.plan(linked, {{"keep.value", lent.lend()}}), "test.ramp"));
  BOOST_TEST(says(engine_refusal([&] {
                    engine.check(linked, {{"keep.valeu", lent.lend()}});
                  }),
                  "has no input 'valeu'"));
  BOOST_TEST(lent.given_back() == 6);
  BOOST_TEST(says(engine_refusal([&] { engine.plan({}); }), "this workflow is empty"));
}

BOOST_AUTO_TEST_CASE(an_observer_gets_previews_only_when_it_asks_for_them) {
  const std::string flow =
      workflow({{"draw", R"({"class_type": "test.draw", "inputs": {}})"},
                {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["draw", 0]}})"}});
  for (const bool wanted : {true, false}) {
    std::vector<std::string> seen;
    Run run =
        engine.start(engine.parse(flow),
                     {.observer =
                          [&](const Event& e) {
                            if (e.kind != Event::Kind::preview) return;
                            BOOST_TEST_REQUIRE(e.preview != nullptr);
                            const Preview& p = *e.preview;
                            BOOST_TEST(p.width == 2u);
                            BOOST_TEST(p.height == 1u);
                            BOOST_TEST(p.step_count == 3u);
                            BOOST_TEST(e.run != 0u);
                            BOOST_TEST(e.device == "cpu:0");
                            seen.push_back(std::string(e.node) + " " + std::to_string(p.step) +
                                           ": " + std::string(p.pixels, p.pixels + 6));
                          },
                      .fetch = {"keep.out"},
                      .previews = wanted ? PreviewMethod::linear : PreviewMethod::none});
    // How often the node found that somebody looks.
    BOOST_TEST(run.wait().text("keep.out") == (wanted ? "3" : "0"));
    const std::vector<std::string> all{"draw 1: aaabbb", "draw 2: bbbccc", "draw 3: cccddd"};
    BOOST_TEST(seen == (wanted ? all : std::vector<std::string>{}),
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_SUITE_END()
