// LoRA and models as hooks of conditionings and of text encoders in whole runs: against PyTorch
// (make_hook_goldens.py), and against the same changes made by loaders.
#include "engine/base/text.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/node_fixture.h"

using heddle::Engine;
using heddle::EngineOptions;
using heddle::engine::cat;
using heddle::test::NodeFixture;

namespace {

std::string hook_node(const std::string& name, const std::string& type, const std::string& inputs) {
  return cat("\"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs, "}}, ");
}

std::string lora_hook(const std::string& name, const std::string& file, double strength,
                      const std::string& more = "") {
  return hook_node(
      name, "CreateHookLoraModelOnly",
      cat(R"("lora_name": ")", file, R"(.safetensors", "strength_model": )", strength, more));
}

std::string hooked(const std::string& name, const std::string& conditioning,
                   const std::string& hooks) {
  return hook_node(
      name, "ConditioningSetProperties",
      cat(R"("cond_NEW": [")", conditioning,
          R"(", 0], "strength": 1.0, "set_cond_area": "default", "hooks": [")", hooks, R"(", 0])"));
}

std::string keyframe(const std::string& name, double strength, double start,
                     const std::string& before = "") {
  return hook_node(name, "CreateHookKeyframe",
                   cat(R"("strength_mult": )", strength, R"(, "start_percent": )", start,
                       before.empty() ? "" : cat(R"(, "prev_hook_kf": [")", before, R"(", 0])")));
}

std::string under_keyframes(const std::string& keyframes) {
  return hook_node("timed", "SetHookKeyframes",
                   cat(R"("hooks": ["lora", 0], "hook_kf": [")", keyframes, R"(", 0])"));
}

struct HooksFixture : NodeFixture {
  heddle::test::TensorFile hook_goldens{here() / "hook_goldens.safetensors"};

  std::vector<float> latent(const std::string& nodes, const std::string& changes = "") {
    return run(nodes + "\"out\": " + ksampler(changes) + ", " + kLook, {"out.LATENT"})
        .floats("out.LATENT", "samples");
  }
  void compare_hooked(const std::string& golden, const std::string& nodes,
                      const std::string& changes) {
    const double error =
        heddle::test::relative_error(latent(nodes, changes), hook_goldens.floats(golden));
    BOOST_TEST(error < kTolerance, golden << ": relative error " << error);
  }

  // An engine of its own, over the same files.
  EngineOptions more_options() const {
    EngineOptions options = heddle::test::engine_options();
    options.compute[heddle::test::test_device_kind()] = "f32";
    options.model_dirs = {folder / "models"};
    options.output_dir = folder / "more";
    return options;
  }
  // The calls of the node "out", as they were made.
  std::vector<std::string> calls(const std::string& nodes, const std::string& changes) const {
    const std::string flow = workflow(nodes + "\"out\": " + ksampler(changes) + ", " + kLook);
    Engine::Data engine(more_options());
    return heddle::test::infer_and_run(engine, flow).made.calls.at("out");
  }
};

// Of the positive conditioning alone.
const std::string kPositive = R"("positive": ["yes", 0])";
const std::string kBoth = R"("positive": ["yes", 0], "negative": ["no", 0])";

}  // namespace

BOOST_FIXTURE_TEST_SUITE(hooks, HooksFixture)

BOOST_AUTO_TEST_CASE(conditionings_with_different_hooks_are_seen_by_different_models) {
  compare_hooked("apart",
                 lora_hook("a", "diffusers", 0.6) + lora_hook("b", "peft", 1.0) +
                     hooked("yes", "one", "a") + hooked("no", "two", "b"),
                 kBoth);
}

BOOST_AUTO_TEST_CASE(hooks_behind_one_another_add_up_and_leave_other_entries_alone) {
  const std::string rest =
      hook_node("yes", "ConditioningCombine",
                R"("conditioning_1": ["part", 0], "conditioning_2": ["three", 0])");
  compare_hooked("mean",
                 lora_hook("first", "diffusers", 0.6) +
                     lora_hook("a", "peft", -0.5, R"(, "prev_hooks": ["first", 0])") +
                     hooked("part", "one", "a") + rest,
                 kPositive);
  const std::string combined = lora_hook("b", "peft", -0.5) + lora_hook("first", "diffusers", 0.6);
  compare_hooked(
      "mean",
      combined +
          hook_node("a", "CombineHooks4", R"("hooks_B": ["first", 0], "hooks_D": ["b", 0])") +
          hooked("part", "one", "a") + rest,
      kPositive);
  // Set one after the other, and given to a pair together.
  compare_hooked("mean",
                 combined + hooked("half", "one", "first") + hooked("part", "half", "b") + rest,
                 kPositive);
}

BOOST_AUTO_TEST_CASE(one_hook_given_twice_counts_once) {
  const std::string hook = lora_hook("a", "peft", 1.0);
  const std::vector<float> once = latent(hook + hooked("yes", "one", "a"), kPositive);
  BOOST_TEST(once == latent(hook +
                                hook_node("twice", "CombineHooks2",
                                          R"("hooks_A": ["a", 0], "hooks_B": ["a", 0])") +
                                hooked("yes", "one", "twice"),
                            kPositive));
  BOOST_TEST(once != latent(hook + lora_hook("b", "peft", 1.0, R"(, "prev_hooks": ["a", 0])") +
                                hooked("yes", "one", "b"),
                            kPositive));
}

BOOST_AUTO_TEST_CASE(keyframes_say_step_by_step_how_strong_a_hook_is) {
  compare_hooked("keyframes",
                 lora_hook("lora", "peft", 1.5) + keyframe("k1", 0.25, 0.3) +
                     keyframe("k2", 1.0, 0.0, "k1") + keyframe("k3", 0.0, 0.5, "k2") +
                     keyframe("k4", -0.5, 0.5, "k3") + under_keyframes("k4") +
                     hooked("yes", "one", "timed"),
                 kPositive + R"(, "steps": 6)");
}

BOOST_AUTO_TEST_CASE(keyframes_are_interpolated_as_comfyui_does, *boost::unit_test::label("long")) {
  for (const std::string way : {"linear", "ease_in", "ease_out", "ease_in_out"})
    compare_hooked(
        way,
        lora_hook("lora", "peft", 1.0) +
            hook_node("frames", "CreateHookKeyframesInterpolated",
                      cat(R"("strength_start": 0.2, "strength_end": 1.4, "interpolation": ")", way,
                          R"(", "start_percent": 0.2, "end_percent": 0.8, "keyframes_count": 5,
                             "print_keyframes": false)")) +
            under_keyframes("frames") + hooked("yes", "one", "timed"),
        kPositive + R"(, "steps": 6)");
}

BOOST_AUTO_TEST_CASE(a_hook_without_strength_leaves_every_byte) {
  const std::vector<float> plain = latent("");
  BOOST_TEST(plain ==
             latent(lora_hook("lora", "peft", 0.0) + hooked("yes", "one", "lora"), kPositive));
  BOOST_TEST(plain == latent(lora_hook("lora", "peft", 1.0) + keyframe("off", 0.0, 0.0) +
                                 under_keyframes("off") + hooked("yes", "one", "timed"),
                             kPositive));
  BOOST_TEST(plain == latent(hook_node("none", "CombineHooks2", "") + hooked("yes", "one", "none"),
                             kPositive));
}

BOOST_AUTO_TEST_CASE(defaults_and_pairs_take_hooks) {
  const std::string hook = lora_hook("a", "peft", 1.0);
  const auto in_part = [](const std::string& name, const std::string& from) {
    return hook_node(name, "ConditioningSetAreaPercentage",
                     cat(R"("conditioning": [")", from, R"(", 0], "width": 0.5, "height": 0.5,
                         "x": 0.0, "y": 0.0, "strength": 0.5)"));
  };
  const std::string parts = hook + in_part("a1", "one") + in_part("n1", "two");
  const std::vector<float> defaults = latent(
      parts + hook_node("yes", "ConditioningSetDefaultCombine",
                        R"("cond": ["a1", 0], "cond_DEFAULT": ["three", 0], "hooks": ["a", 0])"),
      kPositive);
  BOOST_TEST(defaults == latent(parts + hooked("under", "three", "a") +
                                    hook_node("yes", "ConditioningSetDefaultCombine",
                                              R"("cond": ["a1", 0], "cond_DEFAULT": ["under", 0])"),
                                kPositive));
  const std::string pair =
      hook_node("pair", "PairConditioningSetProperties",
                R"("positive_NEW": ["one", 0], "negative_NEW": ["two", 0], "strength": 1.0,
                   "set_cond_area": "default", "hooks": ["a", 0])");
  BOOST_TEST(latent(hook + pair, R"("positive": ["pair", 0], "negative": ["pair", 1])") ==
             latent(hook + hooked("yes", "one", "a") + hooked("no", "two", "a"), kBoth));
}

// The same hooks on everything: the model that a loader patches.
BOOST_AUTO_TEST_CASE(equal_hooks_are_evaluated_together) {
  const std::string hook = lora_hook("a", "peft", 0.75) + hooked("yes", "one", "a");
  BOOST_TEST(latent(hook + hooked("no", "two", "a"), kBoth) ==
             latent(hook_node("patched", "LoraLoaderModelOnly",
                              R"("model": ["model", 0], "lora_name": "peft.safetensors",
                                 "strength_model": 0.75)"),
                    R"("model": ["patched", 0])"));
  const auto made = [&](const std::string& nodes, const std::string& changes) {
    return calls(nodes, changes);
  };
  const auto sets = [](const std::string& call) {
    std::size_t count = 0;
    for (std::size_t at = call.find("; set "); at != std::string::npos;
         at = call.find("; set ", at + 1))
      ++count;
    return count;
  };
  const std::vector<std::string> together = made(hook + hooked("no", "two", "a"), kBoth);
  BOOST_TEST_REQUIRE(together.size() == 1u);
  BOOST_TEST(sets(together.front()) == 2u);
  const std::vector<std::string> apart = made(hook, kPositive);
  BOOST_TEST_REQUIRE(apart.size() == 2u);
  BOOST_TEST(sets(apart[0]) == 1u);
  BOOST_TEST(sets(apart[1]) == 1u);
}

BOOST_AUTO_TEST_CASE(a_lora_of_another_model_is_refused_with_its_file) {
  folder.write("models/loras/foreign.safetensors",
               heddle::test::safetensors_bytes(
                   {{"lora_unet_nothing.lora_down.weight", "F32", {1, 1}, std::string(4, '\0')},
                    {"lora_unet_nothing.lora_up.weight", "F32", {1, 1}, std::string(4, '\0')}}));
  const std::string refusal = heddle::test::engine_refusal(
      [&] { latent(lora_hook("a", "foreign", 1.0) + hooked("yes", "one", "a"), kPositive); });
  BOOST_TEST(refusal.find("foreign.safetensors: none of its 2 keys") != std::string::npos, refusal);
  // A hook that has nothing for the diffusion model changes nothing of it.
  folder.write("models/loras/text.safetensors",
               heddle::test::safetensors_bytes(
                   {{"lora_te1_nothing.lora_down.weight", "F32", {1, 1}, std::string(4, '\0')},
                    {"lora_te1_nothing.lora_up.weight", "F32", {1, 1}, std::string(4, '\0')}}));
  BOOST_TEST(latent("") ==
             latent(lora_hook("a", "text", 1.0) + hooked("yes", "one", "a"), kPositive));
}

BOOST_AUTO_TEST_SUITE_END()

namespace {

struct ModelHooks : HooksFixture {
  // The tiny model in f32 with `change` of each number, in a checkpoint and as a model alone.
  template <class Change>
  void write_model(const std::string& name, Change&& change) {
    std::vector<heddle::test::FileTensor> alone, whole;
    const heddle::test::TensorFile file(random() / "flux_diffusers.safetensors");
    for (const auto& [tensor, entry] : file.entries()) {
      std::vector<float> values(entry.bytes.size() / 2);
      for (std::size_t i = 0; i < values.size(); ++i) {
        std::uint16_t half = 0;  // bf16
        std::memcpy(&half, entry.bytes.data() + 2 * i, 2);
        const std::uint32_t bits = std::uint32_t(half) << 16;
        std::memcpy(&values[i], &bits, 4);
        values[i] = change(tensor, values[i]);
      }
      alone.push_back({tensor, "F32", entry.shape, heddle::test::bytes_of_floats(values)});
      whole.push_back(alone.back());
      whole.back().name = "model.diffusion_model." + tensor;
    }
    std::filesystem::create_directories(folder / "models/checkpoints");
    folder.write("models/diffusion_models/" + name, heddle::test::safetensors_bytes(alone));
    folder.write("models/checkpoints/" + name, heddle::test::safetensors_bytes(whole));
  }
  std::vector<float> drawn_by(const std::string& file) {
    return latent(hook_node("other", "UNETLoader",
                            cat(R"("unet_name": ")", file, R"(", "weight_dtype": "default")")),
                  R"("model": ["other", 0])");
  }
};

float more_attention(const std::string& name, float value, float factor) {
  return name.find("attn") == std::string::npos ? value : factor * value;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(model_hooks, ModelHooks)

BOOST_AUTO_TEST_CASE(a_model_as_lora_adds_what_it_differs_by) {
  write_model("all.safetensors", [](const std::string& name, float value) {
    return more_attention(name, value, 1.5f);
  });
  write_model("half.safetensors", [](const std::string& name, float value) {
    return more_attention(name, value, 1.25f);
  });
  const auto hooked_by = [&](double strength) {
    return latent(
        hook_node("a", "CreateHookModelAsLoraModelOnly",
                  cat(R"("ckpt_name": "all.safetensors", "strength_model": )", strength)) +
            hooked("yes", "one", "a") + hooked("no", "two", "a"),
        kBoth);
  };
  BOOST_TEST(heddle::test::relative_error(hooked_by(1.0), drawn_by("all.safetensors")) <
             kTolerance);
  BOOST_TEST(heddle::test::relative_error(hooked_by(0.5), drawn_by("half.safetensors")) <
             kTolerance);
  BOOST_TEST(heddle::test::relative_error(drawn_by("all.safetensors"), latent("")) > 0.01);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_of_another_kind_is_refused) {
  std::vector<heddle::test::FileTensor> tensors;
  for (int i = 0; i < 8; ++i)
    tensors.push_back({cat("model.diffusion_model.other", i), "F32", {1}, std::string(4, '\0')});
  std::filesystem::create_directories(folder / "models/checkpoints");
  folder.write("models/checkpoints/other.safetensors", heddle::test::safetensors_bytes(tensors));
  const std::string refusal = heddle::test::engine_refusal([&] {
    latent(hook_node("a", "CreateHookModelAsLora",
                     R"("ckpt_name": "other.safetensors", "strength_model": 1.0,
                        "strength_clip": 1.0)") +
               hooked("yes", "one", "a"),
           kPositive);
  });
  BOOST_TEST(refusal.find("other.safetensors") != std::string::npos, refusal);
  BOOST_TEST(refusal.find("none of its 8 tensors") != std::string::npos, refusal);
}

BOOST_AUTO_TEST_SUITE_END()
