// Areas, masks, times and defaults of conditionings, guiders of three, patches of predictions and
// caches of steps in whole runs, against PyTorch (make_goldens.py).
#include "engine/base/text.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/node_fixture.h"

using heddle::engine::cat;
using heddle::test::check_inference;
using heddle::test::NodeFixture;

namespace {

std::string set_node(const std::string& name, const std::string& type, const std::string& inputs) {
  return cat("\"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs, "}}, ");
}

// Half the width and two thirds of the height: cells 4 to 8 and 2 to 6 of 8 x 6.
std::string in_area(const std::string& name, const std::string& from, const std::string& strength) {
  return set_node(
      name, "ConditioningSetAreaPercentage",
      cat(R"("conditioning": [")", from,
          R"(", 0], "width": 0.5, "height": 0.67, "x": 0.5, "y": 0.34, "strength": )", strength));
}

std::string joined(const std::string& name, const std::string& first, const std::string& second) {
  return set_node(
      name, "ConditioningCombine",
      cat(R"("conditioning_1": [")", first, R"(", 0], "conditioning_2": [")", second, R"(", 0])"));
}

std::string areas() {
  return in_area("part", "one", "0.7") +
         set_node("rest", "ConditioningSetAreaStrength",
                  R"("conditioning": ["three", 0], "strength": 0.5)") +
         joined("both", "part", "rest");
}

std::string defaults() {
  return in_area("part", "one", "0.7") +
         set_node("both", "ConditioningSetDefaultCombine",
                  R"("cond": ["part", 0], "cond_DEFAULT": ["three", 0])");
}

std::string ranges() {
  return set_node("early", "ConditioningSetTimestepRange",
                  R"("conditioning": ["one", 0], "start": 0.0, "end": 0.5)") +
         set_node("when", "ConditioningTimestepsRange",
                  R"("start_percent": 0.0, "end_percent": 0.5)") +
         set_node("late", "ConditioningSetProperties",
                  R"("cond_NEW": ["three", 0], "strength": 1.0, "set_cond_area": "default",
                     "timesteps": ["when", 2])") +
         joined("both", "early", "late");
}

struct ConditioningFixture : NodeFixture {
  // A run with what `nodes` call "both" for the positive.
  void compare_both(const std::string& nodes, const std::string& golden) {
    compare_latent(nodes + "\"out\": " + ksampler(R"("positive": ["both", 0])"), golden);
  }
  // A run of a model that is patched.
  void compare_patched(const std::string& type, const std::string& inputs,
                       const std::string& changes, const std::string& golden) {
    const std::string more = changes.empty() ? "" : ", " + changes;
    compare_latent(set_node("patched", type, R"("model": ["model", 0])" + inputs) +
                       "\"out\": " + ksampler(R"("model": ["patched", 0])" + more),
                   golden);
  }
  void compare_guider(const std::string& guider, const std::string& golden) {
    const std::string nodes =
        guider + set_node("noise", "RandomNoise", R"("noise_seed": 7)") +
        set_node("euler", "KSamplerSelect", R"("sampler_name": "euler")") +
        set_node("levels", "BasicScheduler",
                 R"("model": ["model", 0], "scheduler": "simple", "steps": 4, "denoise": 1.0)") +
        set_node("out", "SamplerCustomAdvanced",
                 R"("noise": ["noise", 0], "guider": ["guider", 0], "sampler": ["euler", 0],
                    "sigmas": ["levels", 0], "latent_image": ["empty", 0])");
    compare(run(nodes + kLook, {"out.output"}).floats("out.output", "samples"), golden);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(conditionings, ConditioningFixture)

BOOST_AUTO_TEST_CASE(an_area_is_predicted_on_its_own_and_has_an_opposite) {
  compare_both(areas(), "areas");
}

BOOST_AUTO_TEST_CASE(a_mask_says_how_much_a_text_counts) {
  compare_both(set_node("part", "ConditioningSetMask",
                        R"("conditioning": ["one", 0], "mask": ["mask", 0], "strength": 0.8,
                           "set_cond_area": "default")") +
                   joined("both", "part", "three"),
               "masked_text");
}

BOOST_AUTO_TEST_CASE(texts_count_in_their_parts_of_the_way) { compare_both(ranges(), "ranges"); }

BOOST_AUTO_TEST_CASE(a_default_counts_where_the_others_leave_something) {
  compare_both(defaults(), "default");
}

BOOST_AUTO_TEST_CASE(what_areas_and_times_ask_of_the_model_is_told_before) {
  NodeFixture models;
  heddle::EngineOptions options = heddle::test::engine_options();
  options.compute[heddle::test::test_device_kind()] = "f32";
  options.model_dirs.push_back(models.folder / "models");
  // With a patch that has a text of its own, too.
  const std::string third =
      set_node("patched", "PerpNeg",
               R"("model": ["model", 0], "empty_conditioning": ["three", 0], "neg_scale": 1.5)");
  for (const std::string& nodes : {areas(), ranges(), defaults(), third}) {
    heddle::Engine::Data engine(options);
    check_inference(
        engine,
        R"({"model": {"class_type": "DiffusersLoader", "inputs": {"model_path": "random"}},
          "one": {"class_type": "CLIPTextEncode", "inputs": {"text": "a house", "clip": ["model", 1]}},
          "two": {"class_type": "CLIPTextEncode", "inputs": {"text": "by night", "clip": ["model", 1]}},
          "three": {"class_type": "CLIPTextEncode", "inputs": {"text": "by the sea", "clip": ["model", 1]}},
          "empty": {"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 48, "batch_size": 1}}, )" +
            nodes + "\"out\": " +
            ksampler(nodes == third ? R"("model": ["patched", 0])" : R"("positive": ["both", 0])") +
            ", " + kLook + "}");
  }
}

BOOST_AUTO_TEST_CASE(guiders_of_three_conditionings_mix_them) {
  for (const char* style : {"regular", "nested"})
    compare_guider(
        set_node("guider", "DualCFGGuider",
                 cat(R"("model": ["model", 0], "cond1": ["one", 0], "cond2": ["three", 0],
                                "negative": ["two", 0], "cfg_conds": 3.0, "cfg_cond2_negative": 2.0,
                                "style": ")",
                     style, "\"")),
        style == std::string("nested") ? "dual_nested" : "dual");
  compare_guider(set_node("guider", "PerpNegGuider",
                          R"("model": ["model", 0], "positive": ["one", 0], "negative": ["two", 0],
                  "empty_conditioning": ["three", 0], "cfg": 3.0, "neg_scale": 1.5)"),
                 "perp_neg");
}

BOOST_AUTO_TEST_CASE(a_patch_with_a_text_of_its_own_has_it_predicted) {
  compare_patched("PerpNeg", R"(, "empty_conditioning": ["three", 0], "neg_scale": 1.5)", "",
                  "perp_neg");
}

BOOST_AUTO_TEST_CASE(a_patch_mixes_in_the_place_of_guidance) {
  compare_patched("RescaleCFG", R"(, "multiplier": 0.7)", "", "rescale_cfg");
}

BOOST_AUTO_TEST_CASE(a_cfg_holds_in_its_part_of_the_way) {
  compare_patched("CFGOverride", R"(, "cfg": 1.0, "start_percent": 0.5, "end_percent": 1.0)", "",
                  "cfg_override");
}

BOOST_AUTO_TEST_CASE(a_weak_mask_is_drawn_anew_for_a_shorter_time) {
  compare_latent(
      set_node("patched", "DifferentialDiffusion", R"("model": ["model", 0])") +
          set_node("masked", "SetLatentNoiseMask",
                   R"("samples": ["latent", 0], "mask": ["mask", 0])") +
          "\"out\": " +
          ksampler(R"("cfg": 1, "model": ["patched", 0], "latent_image": ["masked", 0])"),
      "differential");
}

BOOST_AUTO_TEST_CASE(evaluations_in_which_little_changes_are_left_out) {
  const std::string numbers =
      R"(, "reuse_threshold": 2.5, "start_percent": 0.1, "end_percent": 0.9, "verbose": false)";
  compare_patched("LazyCache", numbers, R"("steps": 10)", "lazy_cache");
  compare_patched("EasyCache", numbers, R"("steps": 10)", "easy_cache");
}

BOOST_AUTO_TEST_CASE(levels_are_written_extended_and_asked_for) {
  const auto levels = [&](const std::string& nodes) {
    return run(nodes + R"("out2": {"class_type": "test.look", "inputs": {"value": ["out", 0]}})",
               {"out.SIGMAS"})
        .floats("out.SIGMAS");
  };
  BOOST_TEST(levels(set_node("out", "ManualSigmas", R"("sigmas": "1., .5;0.25 -2, 1e-3")")) ==
             (std::vector<float>{1.0f, 0.5f, 0.25f, -2.0f, 1.0f, -3.0f}));
  const auto extended = [&](const std::string& spacing) {
    return levels(set_node("given", "ManualSigmas", R"("sigmas": "16 8 4 0")") +
                  set_node("out", "ExtendIntermediateSigmas",
                           cat(R"("sigmas": ["given", 0], "steps": 2, "start_at_sigma": 8.0,
                               "end_at_sigma": 5.0, "spacing": ")",
                               spacing, "\"")));
  };
  BOOST_TEST(extended("linear") == (std::vector<float>{16, 8, 6, 4, 0}));
  // sin(45 degrees), and 1 - cos(45 degrees), of the step.
  BOOST_TEST(extended("cosine")[2] == 8 - 4 * 0.70710678f, boost::test_tools::tolerance(1e-6f));
  BOOST_TEST(extended("sine")[2] == 8 - 4 * 0.29289322f, boost::test_tools::tolerance(1e-6f));
}

BOOST_AUTO_TEST_CASE(a_picture_with_a_masked_part_is_conditioning_and_latent) {
  const auto inpainted = [](const std::string& name, const std::string& mask) {
    return set_node(name, "InpaintModelConditioning",
                    cat(R"("positive": ["one", 0], "negative": ["two", 0], "vae": ["pipe", 2],
                        "pixels": ["picture", 0], "mask": [")",
                        mask, R"(", 0], "noise_mask": true)")) +
           set_node("first_" + name, "test.first", cat(R"("list": [")", name, R"(", 0])")) +
           set_node("look_" + name, "test.look", cat(R"("value": ["first_)", name, R"(", 0])")) +
           set_node("latent_" + name, "test.look", cat(R"("value": [")", name, R"(", 2])"));
  };
  const auto results =
      run(set_node("pipe", "DiffusersLoader", R"("model_path": "random")") +
              set_node("picture", "EmptyImage",
                       R"("width": 19, "height": 17, "batch_size": 1, "color": 16744448)") +
              set_node("nothing", "SolidMask", R"("value": 0.0, "width": 9, "height": 5)") +
              set_node("all", "SolidMask", R"("value": 1.0, "width": 9, "height": 5)") +
              set_node("plain", "VAEEncode", R"("pixels": ["picture", 0], "vae": ["pipe", 2])") +
              inpainted("kept", "nothing") + inpainted("drawn", "all") +
              R"("look_plain": {"class_type": "test.look", "inputs": {"value": ["plain", 0]}})",
          {"plain.LATENT", "first_kept.value", "first_drawn.value", "kept.latent", "drawn.latent"});
  const std::vector<float> plain = results.floats("plain.LATENT", "samples");
  BOOST_TEST(results.floats("kept.latent", "samples") == plain);
  BOOST_TEST(results.floats("drawn.latent", "samples") == plain);
  // Where nothing is masked the conditioning has the picture itself; where all is, a grey one.
  BOOST_TEST(scaled(results.floats("first_kept.value", "concat_latent_image")) == plain);
  BOOST_TEST(scaled(results.floats("first_drawn.value", "concat_latent_image")) != plain);
  const std::vector<float> mask = results.floats("drawn.latent", "noise_mask");
  BOOST_TEST(mask == std::vector<float>(mask.size(), 1.0f));
  BOOST_TEST(mask.size() == 16u * 18u);
}

BOOST_AUTO_TEST_CASE(a_model_is_told_what_its_output_means) {
  compare_latent(set_node("patched", "ModelSamplingContinuousEDM",
                          R"("model": ["model", 0], "sampling": "v_prediction", "sigma_max": 10.0,
                             "sigma_min": 0.1)") +
                     "\"out\": " + ksampler(R"("cfg": 1, "model": ["patched", 0])"),
                 "continuous_v_prediction");
  // The highest levels of ComfyUI's tables.
  const auto highest = [&](const std::string& type, const std::string& inputs) {
    return run(set_node("patched", type, R"("model": ["model", 0], )" + inputs) +
                   set_node(
                       "out", "BasicScheduler",
                       R"("model": ["patched", 0], "scheduler": "simple", "steps": 1, "denoise": 1.0)") +
                   kLook,
               {"out.SIGMAS"})
        .floats("out.SIGMAS")
        .front();
  };
  const auto near = boost::test_tools::tolerance(1e-6f);
  BOOST_TEST(highest("ModelSamplingDiscrete", R"("sampling": "eps", "zsnr": false)") == 14.614641f,
             near);
  BOOST_TEST(highest("ModelSamplingDiscrete", R"("sampling": "lcm", "zsnr": true)") == 4518.7637f,
             near);
  BOOST_TEST(
      highest("ModelSamplingContinuousV",
              R"("sampling": "v_prediction", "sigma_max": 500.0, "sigma_min": 0.03)") == 500.0f,
      near);
}

BOOST_AUTO_TEST_SUITE_END()
