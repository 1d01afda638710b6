// Models loaded onto a device ahead of runs, and pinned there.
#include "heddle/models.hpp"

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <thread>

#include "engine/base/error.h"
#include "engine/facade/load_turn.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/layers_file.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;

BOOST_AUTO_TEST_SUITE(models)

namespace {

constexpr int kWidth = 80, kLayers = 3;
constexpr std::uint64_t kModelBytes =
    std::uint64_t{kLayers} * kWidth * kWidth * sizeof(float);  // 76,800
constexpr std::uint64_t kBudget = 200 << 10;

struct ModelsFixture {
  test::FakeControl control;
  test::TemporaryFolder folder;
  const test::LayersFile a{"a", kWidth, kLayers}, b{"b", kWidth, kLayers}, c{"c", kWidth, kLayers};
  Engine engine{options()};
  Models models{engine};
  double start = 0;

  ModelsFixture() {
    for (const test::LayersFile& model : {a, b, c})
      folder.write(model.name + ".safetensors", model.bytes());
  }
  static EngineOptions options() {
    EngineOptions o = test::fake_engine_options({"fake:0"}, R"({"memory": 1048576})");
    o.budgets["fake"] = kBudget;
    o.compute["fake"] = "f32";  // what its processor is best at may be another type
    o.reserves["fake:0"] = std::uint64_t{0};
    return o;
  }
  std::string path(const test::LayersFile& model) const {
    return (folder / (model.name + ".safetensors")).string();
  }
  // Its model is all that is loaded: nothing calls it.
  Workflow loader(const test::LayersFile& model) const {
    return engine.parse(test::workflow(
        {{"load",
          (R"({"class_type": "test.load", "inputs": {"path": ")" + path(model) + R"("}})").c_str()},
         {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["load", 0]}})"}}));
  }
  Workflow flow(const test::LayersFile& model) const {
    return engine.parse(test::workflow(
        {{"load",
          (R"({"class_type": "test.load", "inputs": {"path": ")" + path(model) + R"("}})").c_str()},
         {"loop",
          R"({"class_type": "test.planned_loop", "inputs": {"model": ["load", 0], "width": 80}})"},
         {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["loop", 0]}})"}}));
  }
  void run(const test::LayersFile& model) {
    Run run =
        engine.start(flow(model), {.fetch = {"keep.out"}, .inputs = {{"loop.start", start += 1}}});
    BOOST_TEST(model.gives(run.wait().floats("keep.out"), start), model.name);
  }
  std::string name_of(const test::LayersFile& model) const {
    for (const ResidentModel& each : models.resident())
      if (each.name.ends_with(model.name + ".safetensors")) return each.name;
    return {};
  }
  std::uint64_t held(const test::LayersFile& model) const {
    for (const ResidentModel& each : models.resident())
      if (each.name.ends_with(model.name + ".safetensors")) return each.bytes;
    return 0;
  }
  template <class F>
  static EngineError refusal(F&& action) {
    try {
      action();
    } catch (const EngineError& error) {
      return error;
    }
    BOOST_TEST_REQUIRE(false, "it was not refused");
    return {0, {}, ""};
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_run_finds_what_was_loaded_ahead_of_it, ModelsFixture) {
  const std::vector<ResidentModel> loaded = models.load(flow(a), "fake:0");
  BOOST_TEST_REQUIRE(loaded.size() == 1u);
  BOOST_TEST(loaded[0].device == "fake:0");
  BOOST_TEST(loaded[0].bytes == kModelBytes);
  BOOST_TEST(loaded[0].bytes_in_use == 0u);
  BOOST_TEST(!loaded[0].is_pinned);
  BOOST_TEST(control->weights(0) == unsigned(kLayers));
  models.load(loader(a), "fake");  // by its loader alone: it is there
  run(a);
  BOOST_TEST(control->weights(0) == unsigned(kLayers));
}

BOOST_FIXTURE_TEST_CASE(what_is_pinned_stays_and_what_is_not_goes, ModelsFixture) {
  models.load(flow(a), "fake:0", true);
  for (const test::LayersFile& model : {b, c, b, c}) run(model);
  BOOST_TEST(held(a) == kModelBytes);
  BOOST_TEST(held(b) < kModelBytes);  // it has gone for c
  const std::uint64_t made = control->weights(0);
  run(a);
  BOOST_TEST(control->weights(0) == made);
  BOOST_TEST(control->peak_bytes(0) <= kBudget);
  // What is unpinned is as any other: the one that was used longest ago goes.
  const std::vector<ResidentModel> all = models.unpin("fake:0", "");
  BOOST_TEST(std::ranges::none_of(all, &ResidentModel::is_pinned));
  for (const test::LayersFile& model : {b, c}) run(model);
  BOOST_TEST(held(a) < kModelBytes);
}

BOOST_FIXTURE_TEST_CASE(what_does_not_fit_is_refused_before_anything_goes, ModelsFixture) {
  for (const test::LayersFile& model : {a, b}) models.load(flow(model), "fake:0", true);
  const EngineError error = refusal([&] { models.load(flow(c), "fake:0"); });
  BOOST_TEST(error.code() == HEDDLE_OUT_OF_MEMORY);
  for (const char* part : {"c.safetensors", "does not fit on fake:0", "KiB", "pinned there"})
    BOOST_TEST(std::string(error.what()).find(part) != std::string::npos, error.what());
  BOOST_TEST(held(a) == kModelBytes);
  BOOST_TEST(held(b) == kModelBytes);
  run(c);  // a run streams what has no room
  BOOST_TEST(held(a) + held(b) == 2 * kModelBytes);
  // By its name a model goes, pinned or not.
  BOOST_TEST(engine.unload("fake:0", models.resident().at(0).name) > 0u);
  models.load(flow(c), "fake:0", true);
  BOOST_TEST(held(c) == kModelBytes);
}

// All three are of one file: its weights are there once, and room is set aside for them once.
BOOST_FIXTURE_TEST_CASE(weights_that_pinned_models_share_take_room_once, ModelsFixture) {
  models.load(loader(a), "fake:0", true);
  for (const char* as : {"one", "two"}) {
    const std::string rest =
        std::string(R"({"class_type": "test.rebuild", "inputs": {"model": ["load", 0], "as": ")") +
        as + "\"}}";
    const std::string load =
        R"({"class_type": "test.load", "inputs": {"path": ")" + path(a) + R"("}})";
    const Workflow flow = engine.parse(test::workflow(
        {{"load", load.c_str()},
         {"rest", rest.c_str()},
         {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["rest", 0]}})"}}));
    models.load(flow, "fake:0", true);
  }
  BOOST_TEST(control->weights(0) == unsigned(kLayers));
  BOOST_TEST(models.load(loader(b), "fake:0", true).at(0).is_pinned);
  for (const ResidentModel& each : models.resident()) BOOST_TEST(each.is_pinned, each.name);
  BOOST_TEST(refusal([&] { models.load(loader(c), "fake:0"); }).code() == HEDDLE_OUT_OF_MEMORY);
  run(a);
  run(c);  // streamed
  // They are pinned as long as one of the models is.
  const std::vector<ResidentModel> all = models.unpin("fake:0", "");
  BOOST_TEST(all.size() >= 2u);
  models.load(loader(c), "fake:0", true);
  BOOST_TEST(held(c) == kModelBytes);
}

BOOST_FIXTURE_TEST_CASE(what_comes_of_a_pinned_part_may_go, ModelsFixture) {
  models.load(flow(a), "fake:0");
  for (const test::LayersFile& model : {b, c}) run(model);  // some of the first one goes for them
  const std::uint64_t part = held(a);
  BOOST_TEST_REQUIRE(part > 0u);
  BOOST_TEST_REQUIRE(part < kModelBytes);
  const ResidentModel pinned = models.pin("fake:0", name_of(a)).at(0);
  BOOST_TEST(pinned.bytes_pinned == part);
  run(a);
  BOOST_TEST(held(a) == kModelBytes);
  // Admission has set no more aside than stays.
  for (const test::LayersFile& model : {b, c, b, c}) run(model);
  BOOST_TEST(held(a) == part);
  BOOST_TEST(models.load(flow(a), "fake:0", true).at(0).bytes_pinned == kModelBytes);
}

// A load that pins nothing, and one that fails, leave what was pinned as it was.
BOOST_FIXTURE_TEST_CASE(a_load_of_a_pinned_part_pins_no_more_of_it_unasked, ModelsFixture) {
  models.load(flow(a), "fake:0");
  for (const test::LayersFile& model : {b, c}) run(model);  // some of the first one goes for them
  const std::uint64_t part = models.pin("fake:0", name_of(a)).at(0).bytes_pinned;
  BOOST_TEST_REQUIRE(part < kModelBytes);
  const auto pinned = [&] {
    for (const ResidentModel& each : models.resident())
      if (each.is_pinned) return each.bytes_pinned;
    return std::uint64_t{0};
  };
  control->fail_weight(0, 1);
  refusal([&] { models.load(flow(a), "fake:0", true); });
  BOOST_TEST(pinned() == part);
  BOOST_TEST(models.load(flow(a), "fake:0").at(0).bytes == kModelBytes);
  BOOST_TEST(pinned() == part);
  for (const test::LayersFile& model : {b, c, b, c}) run(model);
  BOOST_TEST(held(a) == part);
}

// Of several models that are pinned together: the first one is there when the second one fails.
BOOST_FIXTURE_TEST_CASE(a_load_of_several_that_fails_leaves_each_as_it_was_pinned, ModelsFixture) {
  models.load(flow(a), "fake:0");
  for (const test::LayersFile& model : {b, c}) run(model);  // some of the first one goes for them
  const std::uint64_t part = models.pin("fake:0", name_of(a)).at(0).bytes_pinned;
  BOOST_TEST_REQUIRE(part < kModelBytes);
  engine.unload("fake:0", name_of(b));
  engine.unload("fake:0", name_of(c));
  const auto load = [&](const test::LayersFile& model) {
    return R"({"class_type": "test.load", "inputs": {"path": ")" + path(model) + R"("}})";
  };
  const std::string first = load(a), second = load(b);
  const Workflow both = engine.parse(
      test::workflow({{"a", first.c_str()},
                      {"b", second.c_str()},
                      {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["a", 0]}})"},
                      {"too", R"({"class_type": "test.keep", "inputs": {"value": ["b", 0]}})"}}));
  const auto pinned = [&](const test::LayersFile& model) {
    for (const ResidentModel& each : models.resident())
      if (each.name.ends_with(model.name + ".safetensors")) return each.bytes_pinned;
    return std::uint64_t{0};
  };
  // Whichever is the first of them, one of these fails in the second.
  const std::uint64_t missing = kLayers - part * kLayers / kModelBytes;
  for (const std::uint64_t nth : {missing + 1, std::uint64_t{kLayers} + 1}) {
    control->fail_weight(0, nth);
    refusal([&] { models.load(both, "fake:0", true); });
    BOOST_TEST(pinned(a) == part, nth);
    BOOST_TEST(pinned(b) == 0u, nth);
    control->fail_weight(0, 0);
    for (const test::LayersFile& model : {c, b, c}) run(model);  // what is not pinned goes
    engine.unload("fake:0", name_of(c));
    if (!name_of(b).empty()) engine.unload("fake:0", name_of(b));
  }
  models.load(both, "fake:0", true);
  BOOST_TEST(pinned(a) == kModelBytes);
  BOOST_TEST(pinned(b) == kModelBytes);
}

// As when the program ends that asked for it.
BOOST_FIXTURE_TEST_CASE(a_load_that_nobody_wants_any_more_is_cut_short, ModelsFixture) {
  std::stop_source ends;
  Models asked(engine, ends.get_token());
  BOOST_TEST(asked.load(flow(b), "fake:0").at(0).bytes == kModelBytes);
  ends.request_stop();
  const std::uint64_t made = control->weights(0);
  BOOST_TEST(refusal([&] { asked.load(flow(a), "fake:0", true); }).code() == HEDDLE_CANCELLED);
  BOOST_TEST(control->weights(0) == made);
  BOOST_TEST(held(a) == 0u);
  for (const ResidentModel& each : models.resident()) BOOST_TEST(!each.is_pinned, each.name);
  BOOST_TEST(asked.unload("fake:0", name_of(b)) > 0u);  // for which nobody waits
  models.load(flow(a), "fake:0", true);
  BOOST_TEST(held(a) == kModelBytes);
}

// What the one pins or unloads the other does not see half done: at the end nothing is pinned, nor
// is room set aside for it.
BOOST_FIXTURE_TEST_CASE(an_unload_beside_a_pin_leaves_nothing_half_done, ModelsFixture) {
  models.load(flow(a), "fake:0");
  const std::string name = name_of(a);
  std::atomic<bool> is_over{false};
  std::thread pins([&] {
    while (!is_over) {
      try {
        models.pin("fake:0", name);
      } catch (const EngineError&) {  // it has just gone
      }
    }
  });
  for (int i = 0; i < 300; ++i) {
    try {
      engine.unload("fake:0", name);
      models.load(flow(a), "fake:0");
    } catch (const EngineError&) {  // it is in use by whoever pins it
    }
  }
  is_over = true;
  pins.join();
  models.load(flow(a), "fake:0");
  engine.unload("fake:0", name);
  BOOST_TEST(models.resident().empty());
  for (const test::LayersFile& model : {b, c}) models.load(flow(model), "fake:0", true);
  BOOST_TEST(held(b) + held(c) == 2 * kModelBytes);
}

// As where the one that asks stands on the way of the load.
BOOST_AUTO_TEST_CASE(who_unloads_or_pins_waits_for_a_load_a_limited_time) {
  engine::LoadTurns turns;
  double now = 0;
  const auto take = [&] {
    return take_load_turn(turns, {1, 1}, "flux", "fake:0", {[&] { return now += 6; }});
  };
  {
    const engine::LoadTurns::Turn loads = turns.take({1, 1}, {});
    BOOST_CHECK_EXCEPTION(take(), engine::Error, [](const engine::Error& error) {
      return error.code() == engine::Code::cancelled &&
             std::string(error.what()).starts_with("flux is being loaded on fake:0 now");
    });
  }
  take();
  // Whoever asks ends: at once, and says so.
  std::stop_source ends;
  ends.request_stop();
  const engine::LoadTurns::Turn loads = turns.take({1, 1}, {});
  BOOST_CHECK_EXCEPTION(
      take_load_turn(turns, {1, 1}, "flux", "fake:0", {[] { return 0.0; }, ends.get_token()}),
      engine::Error, [](const engine::Error& error) {
        return error.code() == engine::Code::cancelled &&
               std::string(error.what()).starts_with("whoever asked");
      });
}

BOOST_FIXTURE_TEST_CASE(unloading_all_keeps_what_is_pinned_and_a_drain_does_not, ModelsFixture) {
  models.load(flow(a), "fake:0", true);
  models.load(flow(b), "fake:0");
  engine.unload();
  BOOST_TEST(held(a) == kModelBytes);
  BOOST_TEST(held(b) == 0u);
  BOOST_TEST(engine.drain("fake:0"));
  BOOST_TEST(models.resident().empty());
  BOOST_TEST(refusal([&] { models.load(flow(a), "fake:0"); }).code() == HEDDLE_UNSUPPORTED);
  engine.enable("fake:0");
  for (const test::LayersFile& model : {a, b, c}) run(model);
  BOOST_TEST(held(a) < kModelBytes);  // nothing is pinned any more
}

BOOST_FIXTURE_TEST_CASE(a_load_that_fails_pins_nothing_and_may_be_tried_again, ModelsFixture) {
  control->fail_weight(0, 2);
  BOOST_TEST(refusal([&] { models.load(flow(a), "fake:0", true); }).code() == HEDDLE_IO);
  for (const ResidentModel& each : models.resident()) {
    BOOST_TEST(!each.is_pinned, each.name);
    BOOST_TEST(each.bytes_in_use == 0u, each.name);
  }
  // Nor has it a place in admission: all of the device is there for others.
  for (const test::LayersFile& model : {b, c}) models.load(flow(model), "fake:0", true);
  models.unpin("fake:0", "");
  BOOST_TEST(models.load(flow(a), "fake:0", true).at(0).is_pinned);
  run(a);
  BOOST_TEST(engine.devices().at(0).failures == 0u);
}

BOOST_FIXTURE_TEST_CASE(a_device_that_has_failed_has_nothing_pinned, ModelsFixture) {
  models.load(loader(a), "fake:0", true);
  control->kill(0);
  refusal([&] { run(b); });
  control->revive(0);
  run(a);
  BOOST_TEST(held(a) == kModelBytes);
  for (const ResidentModel& each : models.resident()) BOOST_TEST(!each.is_pinned, each.name);
  models.load(loader(b), "fake:0", true);
  models.load(loader(c), "fake:0", true);  // no room is set aside for the first one
}

BOOST_FIXTURE_TEST_CASE(what_is_not_there_is_told, ModelsFixture) {
  BOOST_TEST(refusal([&] { models.pin("fake:0", "test"); }).code() == HEDDLE_NOT_FOUND);
  BOOST_TEST(refusal([&] { models.load(flow(a), "none"); }).code() == HEDDLE_NOT_FOUND);
  BOOST_TEST(refusal([&] { models.loading("vae"); }).code() == HEDDLE_INVALID_ARGUMENT);
  BOOST_TEST(refusal([&] { models.loading("no_such_folder/x"); }).code() == HEDDLE_NOT_FOUND);
}

BOOST_FIXTURE_TEST_CASE(copies_and_evictions_are_counted, ModelsFixture) {
  BOOST_TEST(engine.devices().at(0).transfers.empty());
  for (const test::LayersFile& model : {a, b, c}) run(model);
  const DeviceInfo device = engine.devices().at(0);
  std::uint64_t up = 0, down = 0, evicted = 0;
  for (const Transfers& each : device.transfers) {
    BOOST_TEST(each.copies > 0u);
    (each.from == "host" && each.to == "fake" ? up : down) += each.bytes;
  }
  BOOST_TEST(up == control->bytes_copied(HEDDLE_FAKE_HOST, 0));
  BOOST_TEST(down == control->bytes_copied(0, HEDDLE_FAKE_HOST));
  for (const Eviction& each : device.memory.evictions)
    if (each.what == "weights without use") evicted += each.bytes;
  BOOST_TEST(evicted >= 3 * kModelBytes - kBudget);
}

BOOST_AUTO_TEST_SUITE_END()
