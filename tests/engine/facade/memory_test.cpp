// Budgets of an engine: what goes when another model comes, who holds what, and eviction.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <map>

#include "tests/fake_device/fake_fixture.h"
#include "tests/support/layers_file.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;

namespace {

constexpr int kModelWidth = 80, kModelLayers = 3;
constexpr std::uint64_t kWeight =
    std::uint64_t{kModelWidth} * kModelWidth * sizeof(float);  // 25,600 bytes
constexpr std::uint64_t kBudget = 200 << 10;

struct MemoryFixture {
  test::FakeControl control;
  test::TemporaryFolder folder;

  const test::LayersFile a{"a", kModelWidth, kModelLayers}, b{"b", kModelWidth, kModelLayers},
      c{"c", kModelWidth, kModelLayers};

  MemoryFixture() {
    for (const test::LayersFile& model : {a, b, c})
      folder.write(model.name + ".safetensors", model.bytes());
  }

  static EngineOptions options() {
    EngineOptions o = test::fake_engine_options({"fake:0"}, R"({"memory": 1048576})");
    o.budgets["fake"] = kBudget;
    o.reserves["fake:0"] = std::uint64_t{0};
    return o;
  }
  std::string flow(const test::LayersFile& model) const {
    const std::string path = (folder / (model.name + ".safetensors")).string();
    return test::workflow(
        {{"load",
          (R"({"class_type": "test.load", "inputs": {"path": ")" + path + R"("}})").c_str()},
         {"x", R"({"class_type": "test.ramp", "inputs": {"count": 80}})"},
         {"loop",
          R"({"class_type": "test.loop", "inputs": {"model": ["load", 0], "x": ["x", 0]}})"},
         {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["loop", 0]}})"}});
  }
  double start = 0;
  // Of another input each time, so that nothing is taken from the cache. The results are those of
  // this model.
  std::vector<float> run(Engine& engine, const test::LayersFile& model) {
    Run run = engine.start(engine.parse(flow(model)),
                           {.fetch = {"keep.out"}, .inputs = {{"x.start", start += 1}}});
    std::vector<float> values = run.wait().floats("keep.out");
    BOOST_TEST(model.gives(values, start), model.name << " gave what is not its result");
    return values;
  }
  void run_at_once(Engine& engine, const std::vector<const test::LayersFile*>& models) {
    const double first = start + 1;
    std::vector<Run> runs;
    for (const test::LayersFile* model : models)
      runs.push_back(engine.start(engine.parse(flow(*model)),
                                  {.fetch = {"keep.out"}, .inputs = {{"x.start", start += 1}}}));
    for (std::size_t i = 0; i < runs.size(); ++i)
      BOOST_TEST(models[i]->gives(runs[i].wait().floats("keep.out"), first + double(i)),
                 models[i]->name << " gave what is not its result");
  }
  // Of the weights of a model's file.
  static std::uint64_t held(const Engine& engine, const std::string& file) {
    std::uint64_t bytes = 0;
    const std::vector<DeviceInfo> devices = engine.devices();
    for (const MemoryUsage& part : devices.at(0).memory.held)
      if (part.kind == "weights" && part.owner.ends_with(file + ".safetensors"))
        bytes += part.bytes;
    return bytes;
  }
  template <class F>
  static std::string refusal(F&& action) {
    try {
      action();
    } catch (const EngineError& error) {
      return error.what();
    }
    return "";
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(memory, MemoryFixture)

BOOST_AUTO_TEST_CASE(
    a_second_model_displaces_only_what_it_needs_and_going_back_makes_only_what_was_dropped) {
  Engine engine(options());
  run(engine, a);
  run(engine, b);
  BOOST_TEST(held(engine, "a") == kModelLayers * kWeight);
  BOOST_TEST(held(engine, "b") == kModelLayers * kWeight);
  run(engine, c);
  BOOST_TEST(control->weights(0) == 9u);
  BOOST_TEST(held(engine, "b") == kModelLayers * kWeight);  // used later than a
  BOOST_TEST(held(engine, "c") == kModelLayers * kWeight);
  const std::uint64_t dropped = kModelLayers - held(engine, "a") / kWeight;
  BOOST_TEST(dropped > 0u);
  BOOST_TEST(dropped < unsigned(kModelLayers));
  const std::uint64_t copied = control->bytes_copied(HEDDLE_FAKE_HOST, 0);
  run(engine, a);
  BOOST_TEST(control->weights(0) == 9 + dropped);
  BOOST_TEST(control->bytes_copied(HEDDLE_FAKE_HOST, 0) - copied >= dropped * kWeight);
  BOOST_TEST(control->bytes_copied(HEDDLE_FAKE_HOST, 0) - copied < (dropped + 1) * kWeight);
  BOOST_TEST(control->peak_bytes(0) <= kBudget);
  BOOST_TEST(control->freed_in_use(0) == 0u);
  // The host has them all.
  BOOST_TEST(engine.host_memory().read_first == 9 * kWeight);
  BOOST_TEST(engine.host_memory().read_again == 0u);
}

BOOST_AUTO_TEST_CASE(a_device_in_host_memory_reads_again_only_what_a_second_model_displaced) {
  EngineOptions o = options();
  o.devices = {"cpu:0"};
  o.reference_kernels = true;  // weights lie there as in the file
  o.budgets = {{"cpu:0", kBudget}};
  o.reserves.clear();
  Engine engine(o);
  for (const test::LayersFile& model : {a, b, c}) run(engine, model);
  BOOST_TEST(held(engine, "b") == kModelLayers * kWeight);  // used later than a
  const std::uint64_t dropped = kModelLayers - held(engine, "a") / kWeight;
  BOOST_TEST(dropped > 0u);
  BOOST_TEST(dropped < unsigned(kModelLayers));
  BOOST_TEST(engine.host_memory().read_first == 9 * kWeight);
  BOOST_TEST(engine.host_memory().read_again == 0u);
  run(engine, a);
  BOOST_TEST(engine.host_memory().read_first == 9 * kWeight);
  BOOST_TEST(engine.host_memory().read_again == dropped * kWeight);
}

BOOST_AUTO_TEST_CASE(results_do_not_depend_on_the_budget) {
  std::map<std::string, std::vector<float>> good;
  for (const std::uint64_t budget : {std::uint64_t{1} << 20, kBudget, std::uint64_t{100} << 10}) {
    EngineOptions o = options();
    o.budgets["fake"] = budget;
    Engine engine(o);
    start = 0;
    for (const test::LayersFile& model : {a, b, c}) {
      const std::vector<float> values = run(engine, model);
      BOOST_TEST((good.try_emplace(model.name, values).first->second == values),
                 model.name << " with " << budget << " bytes");
    }
  }
  BOOST_TEST((good.at("a") != good.at("b") && good.at("b") != good.at("c") &&
              good.at("c") != good.at("a")));
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_says_who_holds_what_and_the_next_run_succeeds) {
  EngineOptions o = options();
  o.budgets["fake"] = 20 << 10;
  Engine engine(o);
  const std::string reason = refusal([&] { run(engine, a); });
  BOOST_TEST(reason.find("out of memory on fake:0") != std::string::npos, reason);
  BOOST_TEST(reason.find("budget 20.0 KiB") != std::string::npos, reason);
  BOOST_TEST(reason.find("node 'loop'") != std::string::npos, reason);
  BOOST_TEST(control->peak_bytes(0) <= 20u << 10);
  engine
      .start(engine.parse(test::workflow(
          {{"x", R"({"class_type": "test.ramp", "inputs": {"count": 80}})"},
           {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["x", 0]}})"}})))
      .wait();
}

BOOST_AUTO_TEST_CASE(a_workflow_can_allow_itself_less_but_not_more_than_the_caller) {
  const auto with_budget = [&](const std::string& bytes) {
    return R"({"devices": {"fake:0": {"budget": ")" + bytes + R"("}}, "prompt": )" + flow(a) + "}";
  };
  const auto run_with = [&](Engine& on, const std::string& bytes) {
    on.start(on.parse(with_budget(bytes)), {.inputs = {{"x.start", start += 1}}}).wait();
  };
  EngineOptions o = options();
  o.budgets.clear();
  Engine engine(o);
  run(engine, b);
  run(engine, c);
  run_with(engine, "120KiB");
  BOOST_TEST(engine.devices().at(0).memory.taken <= 120u << 10);
  BOOST_TEST(engine.devices().at(0).memory.budget == 0u);  // it holds while that runs
  const std::string reason = refusal([&] { run_with(engine, "1KiB"); });
  BOOST_TEST(reason.find("budget 1.0 KiB") != std::string::npos, reason);
  Engine limited(options());
  run_with(limited, "1KiB");
  BOOST_TEST(refusal([&] {
               engine.start(engine.parse(R"({"devices": {"gpu:7": {"budget": 5}}, "prompt": )" +
                                         flow(a) + "}"));
             }).find("gpu:7") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(memory_that_another_program_takes_and_gives_back_is_no_failure) {
  EngineOptions o = options();
  o.budgets.clear();
  std::atomic<double> now = 0;  // threads that read ahead ask for it
  o.clock = [&] { return now.load(); };
  Engine engine(o);
  // The other program takes all that is free but so much.
  const auto squeeze = [&](std::uint64_t free) {
    control->set_foreign_bytes(0, (1 << 20) - control->used_bytes(0) - free);
  };
  const std::vector<float> good = run(engine, a);
  for (const std::uint64_t free : {60 << 10, 20 << 10, 0}) {
    squeeze(free);
    const std::uint64_t before = engine.devices().at(0).memory.taken;
    for (const test::LayersFile& model : {b, c}) run(engine, model);
    BOOST_TEST(engine.devices().at(0).memory.taken <= before + free);
    start = 0;
    BOOST_TEST((run(engine, a) == good));
  }
  control->set_foreign_bytes(0, 0);
  now += 2;
  for (const test::LayersFile& model : {a, b, c}) run(engine, model);
  const std::uint64_t made = control->weights(0);
  for (const test::LayersFile& model : {a, b, c}) run(engine, model);
  BOOST_TEST(control->weights(0) == made);  // all of them stay again
}

BOOST_AUTO_TEST_CASE(kept_values_go_to_host_memory_when_their_device_is_short) {
  EngineOptions o = options();
  o.budgets["fake"] = 130 << 10;
  Engine engine(o);
  const std::string big = test::workflow(
      {{"x", R"({"class_type": "test.ramp", "inputs": {"count": 20000, "start": 3}})"},
       {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["x", 0]}})"}});
  const auto values = [&] {
    return engine.start(engine.parse(big), {.fetch = {"keep.out"}}).wait().floats("keep.out");
  };
  const std::vector<float> good = values();
  const std::uint64_t host = engine.host_memory().taken;
  run(engine, a);
  BOOST_TEST(engine.host_memory().taken >= host + 80000);
  int computed = 0;
  Run again = engine.start(
      engine.parse(big),
      {.observer = [&](const Event& e) { computed += e.kind == Event::Kind::node_started; },
       .fetch = {"keep.out"}});
  BOOST_TEST((again.wait().floats("keep.out") == good));
  BOOST_TEST(computed == 0);
  BOOST_TEST(control->peak_bytes(0) <= 130u << 10);
}

BOOST_AUTO_TEST_CASE(results_that_are_dropped_are_made_again_and_no_others_are_lost) {
  EngineOptions o = options();
  Engine engine(o);
  const std::string flow = test::workflow(
      {{"x", R"({"class_type": "test.ramp", "inputs": {"count": 2000, "start": 3}})"},
       {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["x", 0]}})"}});
  int computed = 0;
  const auto values = [&] {
    StartOptions start{.fetch = {"keep.out"}};
    start.observer = [&](const Event& e) { computed += e.kind == Event::Kind::node_started; };
    return engine.start(engine.parse(flow), std::move(start)).wait();
  };
  const Results first = values();
  const std::vector<float> good = first.floats("keep.out");
  values();
  BOOST_TEST(computed == 2);
  BOOST_TEST(engine.drop_cached() >= 8000u);
  BOOST_TEST(engine.drop_cached() == 0u);
  BOOST_TEST((first.floats("keep.out") == good));  // whoever has a result keeps it
  BOOST_TEST((values().floats("keep.out") == good));
  BOOST_TEST(computed == 4);
}

BOOST_AUTO_TEST_CASE(models_are_unloaded_by_device_and_name_and_everything_truly_goes_back) {
  EngineOptions o = options();
  o.devices = {"fake:0", "fake:1"};
  Engine engine(o);
  run(engine, a);
  run(engine, b);
  BOOST_TEST(refusal([&] { engine.unload("fake:9"); }).find("there are: fake:0, fake:1") !=
             std::string::npos);
  BOOST_TEST(refusal([&] {
               engine.unload("", "nobody");
             }).find("no model 'nobody' is loaded; there are: ") != std::string::npos);
  const std::string name = engine.devices().at(0).memory.held.at(0).owner;
  BOOST_TEST(engine.unload("fake:0", name) == kModelLayers * kWeight);
  BOOST_TEST(engine.unload("fake") > kModelLayers * kWeight);
  for (std::uint32_t d : {0u, 1u}) BOOST_TEST(control->used_bytes(d) == 0u);
  run(engine, a);
  BOOST_TEST(engine.unload("", name.substr(0, name.find(' '))) >= kModelLayers * kWeight);
}

BOOST_AUTO_TEST_CASE(models_that_nothing_uses_for_a_while_are_unloaded) {
  EngineOptions o = options();
  std::atomic<double> now = 1000;
  o.clock = [&] { return now.load(); };
  o.idle_seconds = 60;
  Engine engine(o);
  run(engine, a);
  engine.unload_idle();
  now += 30;
  run(engine, b);
  engine.unload_idle();
  now += 30;
  engine.unload_idle();
  BOOST_TEST(held(engine, "a") == 0u);
  BOOST_TEST(held(engine, "b") == kModelLayers * kWeight);
  now += 30;
  engine.unload_idle();
  BOOST_TEST(held(engine, "b") == 0u);
}

// Two models fit beside each other: the third drives one out, in every round.
BOOST_AUTO_TEST_CASE(two_runs_at_once_share_what_holds_two_of_three_models) {
  static_assert(2 * kModelLayers * kWeight < kBudget && kBudget < 3 * kModelLayers * kWeight);
  Engine engine(options());
  for (int round = 0; round < 5; ++round)
    for (const auto& [first, second] : {std::pair(&a, &b), std::pair(&b, &c), std::pair(&c, &a)})
      run_at_once(engine, {first, second});
  BOOST_TEST(control->weights(0) > 9u);  // some were made again
  BOOST_TEST(control->peak_bytes(0) <= kBudget);
  BOOST_TEST(control->freed_in_use(0) == 0u);
}

// Twice as much as all models: whoever plans beside others counts what they claim as taken.
BOOST_AUTO_TEST_CASE(four_runs_at_once_stay_within_the_budget) {
  EngineOptions o = options();
  o.budgets["fake"] = 400 << 10;
  Engine engine(o);
  for (int round = 0; round < 5; ++round) run_at_once(engine, {&a, &b, &c, &a});
  BOOST_TEST(control->peak_bytes(0) <= 400u << 10);
  BOOST_TEST(control->freed_in_use(0) == 0u);
}

BOOST_AUTO_TEST_CASE(budgets_and_reserves_are_shares_or_bytes_of_devices_or_kinds) {
  EngineOptions o =
      test::fake_engine_options({"fake:0", "fake:1", "cpu:0", "cpu:1"}, R"({"memory": 1048576})");
  o.budgets = {{"fake", MemorySize::of_all(0.5)}, {"fake:1", std::uint64_t{1} << 18}};
  o.reserves = {{"fake:0", MemorySize::of_all(0.25)}};
  o.host_budget = std::uint64_t{1} << 30;
  const Engine engine(o);
  const std::vector<DeviceInfo> devices = engine.devices();
  BOOST_TEST(devices[0].memory.budget == 1u << 19);
  BOOST_TEST(devices[0].memory.headroom == 1u << 18);
  BOOST_TEST(devices[1].memory.budget == 1u << 18);
  BOOST_TEST(devices[2].memory.budget + devices[3].memory.budget <= 1u << 30);
  BOOST_TEST(devices[2].memory.budget > 400u << 20);
  BOOST_TEST(engine.host_memory().budget == 1u << 30);
  o.budgets = {{"gpu", std::uint64_t{5}}};
  BOOST_TEST(refusal([&] {
               Engine(std::move(o));
             }).find("a budget is given for 'gpu', which is not among the devices used") !=
             std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
