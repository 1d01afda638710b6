// Hooks of conditionings and of text encoders on several devices and with little memory: the same
// bytes; what is told before a run; and SetClipHooks against loaders.
#include <cstring>

#include "engine/base/text.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/node_fixture.h"

using heddle::Engine;
using heddle::EngineOptions;
using heddle::engine::cat;
using heddle::test::NodeFixture;

namespace {

// Two texts, that for the picture through encoders with hooks, which are timed.
struct Flow {
  std::string hints = "";  // of the sampler
  std::string clip = "[\"clip\", 0]", negative_clip = "[\"loader\", 1]";
  std::string positive = "text";
  std::string more = "";
};

struct PlacedHooks : NodeFixture {
  const heddle::test::FakeControl control;

  static std::string flow(const Flow& given) {
    return cat(
        R"({"loader": {"class_type": "DiffusersLoader", "inputs": {"model_path": "random"}},
      "peft": {"class_type": "CreateHookLoraModelOnly", "inputs": {"lora_name": "peft.safetensors",
        "strength_model": 1.0}},
      "kohya": {"class_type": "CreateHookLora", "inputs": {"lora_name": "kohya.safetensors",
        "strength_model": 0.5, "strength_clip": 0.75, "prev_hooks": ["peft", 0]}},
      "early": {"class_type": "CreateHookKeyframe", "inputs": {"strength_mult": 1.0, "start_percent": 0.0}},
      "late": {"class_type": "CreateHookKeyframe", "inputs": {"strength_mult": 0.5, "start_percent": 0.5,
        "prev_hook_kf": ["early", 0]}},
      "timed": {"class_type": "SetHookKeyframes", "inputs": {"hooks": ["kohya", 0], "hook_kf": ["late", 0]}},
      "clip": {"class_type": "SetClipHooks", "inputs": {"clip": ["loader", 1], "apply_to_conds": true,
        "schedule_clip": true, "hooks": ["timed", 0]}},
      "still": {"class_type": "SetClipHooks", "inputs": {"clip": ["loader", 1], "apply_to_conds": false,
        "schedule_clip": false, "hooks": ["timed", 0]}},
      "text": {"class_type": "CLIPTextEncode", "inputs": {"text": "a red house", "clip": )",
        given.clip, R"(}},
      "not": {"class_type": "CLIPTextEncode", "inputs": {"text": "by night", "clip": )",
        given.negative_clip, R"(}},
      "empty": {"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 48, "batch_size": 2}},
      )",
        given.more,
        R"("out": {"class_type": "KSampler", "inputs": {"model": ["loader", 0], "seed": 1, "steps": 4,
        "cfg": 3.0, "sampler_name": "euler", "scheduler": "simple", "positive": [")",
        given.positive, R"(", 0], "negative": ["not", 0], "latent_image": ["empty", 0],
        "denoise": 1.0})",
        given.hints, R"(},
      "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }

  EngineOptions options_for(std::vector<std::string> devices, std::uint64_t budget = 0) const {
    const std::string kind = devices.front().substr(0, devices.front().find(':'));
    EngineOptions options = heddle::test::engine_options();
    if (kind == "fake") options.plugin_dirs.push_back(heddle::test::kFakePlugin);
    if (budget > 0) options.budgets = {{devices.front(), heddle::MemorySize{budget}}};
    options.devices = std::move(devices);
    options.compute = {{kind, "f32"}};
    options.reference_kernels = true;
    options.model_dirs = {folder / "models"};
    options.output_dir = folder / "placed";
    return options;
  }
  std::vector<float> draw(EngineOptions options, const Flow& given = {}) const {
    Engine engine(std::move(options));
    return engine.start(engine.parse(flow(given)), {{}, {"out.LATENT"}})
        .wait()
        .floats("out.LATENT", "samples");
  }
  static bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(placed_hooks, PlacedHooks)

BOOST_AUTO_TEST_CASE(hooks_give_the_same_bytes_however_the_model_is_placed,
                     *boost::unit_test::label("long")) {
  const std::vector<float> alone = draw(options_for({"cpu:0"}));
  BOOST_TEST(same_bytes(alone, draw(options_for({"fake:0"}))), "fake:0");
  const auto split = [](const char* mode) {
    return cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")");
  };
  for (const char* mode : {"layers", "data"})
    BOOST_TEST(same_bytes(alone, draw(options_for({"fake:0", "fake:1"}), {.hints = split(mode)})),
               mode);
  // Two sets of one call: both texts have the hooks.
  const std::string hooked = R"(["clip", 0])";
  BOOST_TEST(same_bytes(
      draw(options_for({"cpu:0"}), {.negative_clip = hooked}),
      draw(options_for({"fake:0", "fake:1"}), {.hints = split("cfg"), .negative_clip = hooked})));
}

// Each text has weights of its own, so that each is a call of its own.
BOOST_AUTO_TEST_CASE(branches_with_hooks_of_their_own_are_spread_over_devices) {
  const Flow given{.hints = R"(, "parallel": "cfg", "device": "fake:0,fake:1")"};
  Engine engine(options_for({"fake:0", "fake:1"}));
  const std::string plan = engine.plan(engine.parse(flow(given)));
  for (const char* way : {"resident on fake:0", "resident on fake:1"})
    BOOST_TEST(plan.find(way) != std::string::npos, plan);
  BOOST_TEST(
      same_bytes(draw(options_for({"cpu:0"})), draw(options_for({"fake:0", "fake:1"}), given)));
}

BOOST_AUTO_TEST_CASE(one_branch_alone_is_not_spread) {
  const Flow given{.hints = R"(, "parallel": "cfg", "device": "fake:0,fake:1")",
                   .clip = R"(["loader", 1])"};
  std::string text = flow(given);
  text.replace(text.find(R"("cfg": 3.0)"), 10, R"("cfg": 1.0)");
  Engine engine(options_for({"fake:0", "fake:1"}));
  const std::string said =
      heddle::test::engine_refusal([&] { engine.start(engine.parse(text)).wait(); });
  BOOST_TEST(said.find("parallel mode 'cfg' is not possible") != std::string::npos, said);
}

// Less and less memory, down to what holds the sessions of one of the models only.
BOOST_AUTO_TEST_CASE(hooks_give_the_same_bytes_in_little_memory, *boost::unit_test::label("long")) {
  const std::vector<float> alone = draw(options_for({"fake:0"}));
  int drawn = 0;
  for (const std::uint64_t kilobytes : {3000, 2000, 1500, 1250, 1000, 800, 600}) {
    try {
      const std::vector<float> little = draw(options_for({"fake:0"}, kilobytes << 10));
      ++drawn;
      BOOST_TEST(same_bytes(alone, little), kilobytes << " KiB");
    } catch (const heddle::EngineError& error) {
      BOOST_TEST_MESSAGE(kilobytes << " KiB: " << error.what());
      BOOST_TEST(std::string(error.what()).find("fake:0") != std::string::npos, error.what());
      break;
    }
  }
  BOOST_TEST(drawn > 2);
}

BOOST_AUTO_TEST_CASE(what_hooks_ask_of_models_is_told_before) {
  Engine::Data engine(options_for({"cpu:0"}));
  heddle::test::check_inference(engine, flow({}));
  Engine::Data again(options_for({"cpu:0"}));
  heddle::test::check_inference(again, flow({.clip = R"(["still", 0])"}));
}

// Embeddings for parts of the way are those of encoders that a loader patched.
BOOST_AUTO_TEST_CASE(scheduled_encoders_encode_for_each_part_of_the_way) {
  const auto encoded = [](const std::string& name, double strength, double start, double end) {
    return cat(
        "\"", name, R"( lora": {"class_type": "LoraLoader", "inputs": {"model": ["loader", 0],
        "clip": ["loader", 1], "lora_name": "kohya.safetensors", "strength_model": 0.0,
        "strength_clip": )",
        strength, "}}, \"", name, R"( text": {"class_type": "CLIPTextEncode",
        "inputs": {"text": "a red house", "clip": [")",
        name, " lora\", 1]}}, \"", name,
        R"( when": {"class_type": "ConditioningSetTimestepRange", "inputs": {"conditioning": [")",
        name, R"( text", 0], "start": )", start, R"(, "end": )", end, "}}, \"", name,
        R"(": {"class_type": "ConditioningSetProperties", "inputs": {"cond_NEW": [")", name,
        R"( when", 0], "strength": 1.0, "set_cond_area": "default", "hooks": ["timed", 0]}}, )");
  };
  const std::string both = R"("both": {"class_type": "ConditioningCombine",
      "inputs": {"conditioning_1": ["first", 0], "conditioning_2": ["second", 0]}}, )";
  const Flow by_hand{
      .positive = "both",
      .more = encoded("first", 0.75, 0.0, 0.5) + encoded("second", 0.375, 0.5, 1.0) + both};
  BOOST_TEST(same_bytes(draw(options_for({"cpu:0"})), draw(options_for({"cpu:0"}), by_hand)));
}

BOOST_AUTO_TEST_CASE(encoders_with_hooks_that_are_not_scheduled_have_them_all_the_way) {
  const std::string entries =
      R"("lora": {"class_type": "LoraLoader", "inputs": {"model": ["loader", 0],
        "clip": ["loader", 1], "lora_name": "kohya.safetensors", "strength_model": 0.0, "strength_clip": 0.75}},
      "wanted": {"class_type": "CLIPTextEncode", "inputs": {"text": "a red house", "clip": ["lora", 1]}},
      "one": {"class_type": "test.first", "inputs": {"list": ["text", 0]}},
      "two": {"class_type": "test.first", "inputs": {"list": ["wanted", 0]}},
      "plain": {"class_type": "CLIPTextEncode", "inputs": {"text": "a red house", "clip": ["loader", 1]}},
      "three": {"class_type": "test.first", "inputs": {"list": ["plain", 0]}},
      "look1": {"class_type": "test.look", "inputs": {"value": ["one", 0]}},
      "look2": {"class_type": "test.look", "inputs": {"value": ["two", 0]}},
      "look3": {"class_type": "test.look", "inputs": {"value": ["three", 0]}}, )";
  Engine engine(options_for({"cpu:0"}));
  const heddle::Results results =
      engine
          .start(engine.parse(flow({.clip = R"(["still", 0])", .more = entries})),
                 {{}, {"one.value", "two.value", "three.value"}})
          .wait();
  for (const char* field : {"cross_attn", "pooled_output"}) {
    BOOST_TEST(same_bytes(results.floats("one.value", field), results.floats("two.value", field)));
    BOOST_TEST(
        !same_bytes(results.floats("one.value", field), results.floats("three.value", field)));
  }
}

BOOST_AUTO_TEST_SUITE_END()
