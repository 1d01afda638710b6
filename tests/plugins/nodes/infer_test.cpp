// What the nodes tell before a run, against what they do in it: over the tiny random models.
#include "engine/base/text.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/node_fixture.h"

using heddle::Engine;
using heddle::test::check_inference;
using heddle::test::NodeFixture;

namespace {

struct InferFixture {
  NodeFixture nodes;  // its folder of models
  Engine::Data engine{options()};

  heddle::EngineOptions options() const {
    heddle::EngineOptions options = heddle::test::engine_options();
    options.compute[heddle::test::test_device_kind()] = "f32";
    options.model_dirs.push_back(nodes.folder / "models");
    options.output_dir = nodes.folder / "told";
    return options;
  }

  // The pipeline, two prompts (one weighted) and an empty latent of `batch`; looks at `out`.
  static std::string pipeline(const std::string& more, int batch = 1) {
    return R"({"loader": {"class_type": "DiffusersLoader", "inputs": {"model_path": "random"}},
      "text": {"class_type": "CLIPTextEncode", "inputs": {"text": "a (red:1.3) house (by sea) by night",
           "clip" : [ "loader", 1 ]
  }},
      "not": {"class_type": "CLIPTextEncode", "inputs": {"text": "by night", "clip": ["loader", 1]}},
      "empty": {"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 48, "batch_size": )" +
           std::to_string(batch) + "}}, " + more +
           R"(, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})";
  }  // namespace

  static std::string ksampler(const std::string& sampler, const std::string& cfg,
                              const std::string& latent = "empty", const std::string& steps = "3") {
    return R"({"class_type": "KSampler", "inputs": {"model": ["loader", 0], "seed": 1, "steps": )" +
           steps + R"(, "cfg": )" + cfg + R"(, "sampler_name": ")" + sampler +
           R"(", "scheduler": "simple", "positive": ["text", 0], "negative": ["not", 0], "latent_image": [")" +
           latent + R"(", 0], "denoise": 1.0}})";
  }

  void check(const std::string& more, int batch = 1) {
    check_inference(engine, pipeline(more, batch));
  }
  // A model that reads a picture, which a node of the type gives it.
  void check_with_picture(const std::string& model, const std::string& type,
                          const std::string& more) {
    nodes.write_wider_model(model);
    check(R"("wider": {"class_type": "UNETLoader", "inputs": {"unet_name": ")" + model +
          R"(.safetensors", "weight_dtype": "default"}},
            "picture": {"class_type": "EmptyImage", "inputs": {"width": 17, "height": 12, "batch_size": 2, "color": 255}},
            "hole": {"class_type": "SolidMask", "inputs": {"value": 1.0, "width": 9, "height": 5}},
            "by": {"class_type": ")" +
          type + R"(", "inputs": {"positive": ["text", 0], "negative": ["not", 0],
                   "vae": ["loader", 2], "pixels": ["picture", 0])" +
          more + R"(}},
            "out": {"class_type": "KSampler", "inputs": {"model": ["wider", 0], "seed": 1, "steps": 2, "cfg": 2.0,
                    "sampler_name": "euler", "scheduler": "simple", "positive": ["by", 0], "negative": ["by", 1],
                    "latent_image": ["by", 2], "denoise": 1.0}})");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(inference, InferFixture)

BOOST_AUTO_TEST_CASE(two_prompts_and_a_batch_of_four_are_told_as_they_are_run) {
  check(
      R"("drawn": )" + ksampler("euler", "3.0") +
          R"(, "out": {"class_type": "VAEDecode", "inputs": {"samples": ["drawn", 0], "vae": ["loader", 2]}})",
      4);
}

BOOST_AUTO_TEST_CASE(a_cfg_of_one_is_told_with_one_set) {
  check(R"("out": )" + ksampler("euler", "1.0"));
}

BOOST_AUTO_TEST_CASE(samplers_that_ask_twice_a_step_are_told_with_their_evaluations) {
  // In one run: what a node of an earlier one made would come from the cache.
  std::string all;
  for (const char* sampler : {"heun", "heunpp2", "dpm_2", "uni_pc", "dpmpp_2m_sde"})
    all += heddle::engine::cat("\"", sampler, "\": ", ksampler(sampler, "2.0"), ", \"look ",
                               sampler, R"(": {"class_type": "test.look", "inputs": {"value": [")",
                               sampler, R"(", 0]}}, )");
  check(all + R"("out": )" + ksampler("dpm_2_ancestral", "2.0"));
}

BOOST_AUTO_TEST_CASE(a_sampler_without_evaluations_is_told_without_a_call) {
  check(R"("out": )" + ksampler("uni_pc", "2.0", "empty", "1"));
}

BOOST_AUTO_TEST_CASE(a_part_of_a_schedule_is_told_with_its_steps) {
  check(
      R"("out": {"class_type": "KSamplerAdvanced", "inputs": {"model": ["loader", 0], "add_noise": "enable",
      "noise_seed": 1, "steps": 6, "cfg": 2.0, "sampler_name": "euler", "scheduler": "normal", "positive": ["text", 0],
      "negative": ["not", 0], "latent_image": ["empty", 0], "start_at_step": 1, "end_at_step": 4,
      "return_with_leftover_noise": "enable"}})");
}

BOOST_AUTO_TEST_CASE(literals_that_are_nodes_are_known) {
  check(R"("steps": {"class_type": "PrimitiveInt", "inputs": {"value": 2}},
      "words": {"class_type": "PrimitiveString", "inputs": {"value": "a house"}},
      "text2": {"class_type": "CLIPTextEncode", "inputs": {"text": ["words", 0], "clip": ["loader", 1]}},
      "two": {"class_type": "ConditioningCombine", "inputs": {"conditioning_1": ["text", 0], "conditioning_2": ["text2", 0]}},
      "out": {"class_type": "KSampler", "inputs": {"model": ["loader", 0], "seed": 1, "steps": ["steps", 0], "cfg": 2.0,
        "sampler_name": "euler", "scheduler": "simple", "positive": ["two", 0], "negative": ["not", 0],
        "latent_image": ["empty", 0], "denoise": 0.5}})");
}

BOOST_AUTO_TEST_CASE(a_guided_flux_model_in_parts_is_told_as_it_is_run) {
  check(
      R"("unet": {"class_type": "UNETLoader", "inputs": {"unet_name": "guided.safetensors", "weight_dtype": "default"}},
      "shifted": {"class_type": "ModelSamplingFlux", "inputs": {"model": ["unet", 0], "max_shift": 1.15, "base_shift": 0.5,
        "width": 64, "height": 48}},
      "flux": {"class_type": "CLIPTextEncodeFlux", "inputs": {"clip": ["loader", 1], "clip_l": "a house",
        "t5xxl": "a red house by the sea", "guidance": 2.0}},
      "guided": {"class_type": "FluxGuidance", "inputs": {"conditioning": ["flux", 0], "guidance": 4.0}},
      "guider": {"class_type": "BasicGuider", "inputs": {"model": ["shifted", 0], "conditioning": ["guided", 0]}},
      "noise": {"class_type": "RandomNoise", "inputs": {"noise_seed": 3}},
      "sampler": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "heun"}},
      "sigmas": {"class_type": "BasicScheduler", "inputs": {"model": ["shifted", 0], "scheduler": "simple", "steps": 3,
        "denoise": 1.0}},
      "out": {"class_type": "SamplerCustomAdvanced", "inputs": {"noise": ["noise", 0], "guider": ["guider", 0],
        "sampler": ["sampler", 0], "sigmas": ["sigmas", 0], "latent_image": ["empty", 0]}})",
      2);
}

BOOST_AUTO_TEST_CASE(changed_conditionings_and_cut_levels_are_told_as_they_are_run) {
  check(R"("zero": {"class_type": "ConditioningZeroOut", "inputs": {"conditioning": ["not", 0]}},
      "long": {"class_type": "ConditioningConcat", "inputs": {"conditioning_to": ["text", 0], "conditioning_from": ["not", 0]}},
      "mixed": {"class_type": "ConditioningAverage", "inputs": {"conditioning_to": ["text", 0], "conditioning_from": ["not", 0],
        "conditioning_to_strength": 0.5}},
      "strong": {"class_type": "ConditioningSetAreaStrength", "inputs": {"conditioning": ["mixed", 0], "strength": 2.0}},
      "both": {"class_type": "ConditioningCombine", "inputs": {"conditioning_1": ["long", 0], "conditioning_2": ["strong", 0]}},
      "guider": {"class_type": "CFGGuider", "inputs": {"model": ["loader", 0], "positive": ["both", 0], "negative": ["zero", 0],
        "cfg": 2.5}},
      "noise": {"class_type": "DisableNoise", "inputs": {}},
      "sampler": {"class_type": "SamplerEulerAncestral", "inputs": {"eta": 0.5, "s_noise": 1.0}},
      "sigmas": {"class_type": "BasicScheduler", "inputs": {"model": ["loader", 0], "scheduler": "simple", "steps": 4,
        "denoise": 1.0}},
      "cut": {"class_type": "SplitSigmas", "inputs": {"sigmas": ["sigmas", 0], "step": 2}},
      "first": {"class_type": "SamplerCustomAdvanced", "inputs": {"noise": ["noise", 0], "guider": ["guider", 0],
        "sampler": ["sampler", 0], "sigmas": ["cut", 0], "latent_image": ["empty", 0]}},
      "out": {"class_type": "SamplerCustom", "inputs": {"model": ["loader", 0], "add_noise": false, "noise_seed": 1, "cfg": 2.0,
        "positive": ["strong", 0], "negative": ["not", 0], "sampler": ["sampler", 0], "sigmas": ["cut", 1],
        "latent_image": ["first", 0]}})");
}

BOOST_AUTO_TEST_CASE(a_picture_that_grows_is_told_with_a_call_for_every_size) {
  check(
      R"("sampler": {"class_type": "SamplerLCMUpscale", "inputs": {"scale_ratio": 2.0, "scale_steps": 2,
        "upscale_method": "bilinear"}},
      "sigmas": {"class_type": "BasicScheduler", "inputs": {"model": ["loader", 0], "scheduler": "simple", "steps": 4,
        "denoise": 1.0}},
      "out": {"class_type": "SamplerCustom", "inputs": {"model": ["loader", 0], "add_noise": true, "noise_seed": 1, "cfg": 2.0,
        "positive": ["text", 0], "negative": ["not", 0], "sampler": ["sampler", 0], "sigmas": ["sigmas", 0],
        "latent_image": ["empty", 0]}})");
}

BOOST_AUTO_TEST_CASE(pictures_and_rearranged_latents_are_told_as_they_are_run) {
  check(
      R"("picture": {"class_type": "EmptyImage", "inputs": {"width": 70, "height": 51, "batch_size": 2, "color": 255}},
      "inverted": {"class_type": "ImageInvert", "inputs": {"image": ["picture", 0]}},
      "pair": {"class_type": "ImageBatch", "inputs": {"image1": ["picture", 0], "image2": ["inverted", 0]}},
      "some": {"class_type": "ImageFromBatch", "inputs": {"image": ["pair", 0], "batch_index": 1, "length": 2}},
      "encoded": {"class_type": "VAEEncode", "inputs": {"pixels": ["some", 0], "vae": ["loader", 2]}},
      "shape": {"class_type": "SolidMask", "inputs": {"value": 1.0, "width": 64, "height": 48}},
      "masked": {"class_type": "SetLatentNoiseMask", "inputs": {"samples": ["encoded", 0], "mask": ["shape", 0]}},
      "more": {"class_type": "RepeatLatentBatch", "inputs": {"samples": ["masked", 0], "amount": 2}},
      "last": {"class_type": "LatentFromBatch", "inputs": {"samples": ["more", 0], "batch_index": 3, "length": 5}},
      "drawn": )" +
      ksampler("euler", "1.0", "last") +
      R"(, "out": {"class_type": "VAEDecode", "inputs": {"samples": ["drawn", 0], "vae": ["loader", 2]}})");
}

BOOST_AUTO_TEST_CASE(a_picture_that_a_model_reads_is_told_as_it_is_run) {
  check_with_picture("canny", "InstructPixToPixConditioning", "");
}

BOOST_AUTO_TEST_CASE(a_picture_with_a_hole_that_a_model_reads_is_told_as_it_is_run) {
  check_with_picture("fill", "InpaintModelConditioning",
                     R"(, "mask": ["hole", 0], "noise_mask": false)");
}

BOOST_AUTO_TEST_CASE(reference_pictures_are_told_as_they_are_run) {
  check(
      R"("picture": {"class_type": "EmptyImage", "inputs": {"width": 17, "height": 12, "batch_size": 2, "color": 255}},
           "latent": {"class_type": "VAEEncode", "inputs": {"pixels": ["picture", 0], "vae": ["loader", 2]}},
           "shown": {"class_type": "ReferenceLatent", "inputs": {"conditioning": ["text", 0], "latent": ["latent", 0]}},
           "twice": {"class_type": "ReferenceLatent", "inputs": {"conditioning": ["shown", 0], "latent": ["empty", 0]}},
           "out": {"class_type": "KSampler", "inputs": {"model": ["loader", 0], "seed": 1, "steps": 2, "cfg": 2.0,
                   "sampler_name": "euler", "scheduler": "simple", "positive": ["twice", 0], "negative": ["not", 0],
                   "latent_image": ["empty", 0], "denoise": 1.0}})",
      2);
}

BOOST_AUTO_TEST_CASE(a_text_made_in_the_run_leaves_calls_untold_and_the_latent_told) {
  const auto checked = heddle::test::infer_and_run(
      engine,
      pipeline(R"("words": {"class_type": "demo.hello", "inputs": {"name": "sea", "times": 1}},
      "said": {"class_type": "CLIPTextEncode", "inputs": {"text": ["words", 0], "clip": ["loader", 1]}},
      "out": {"class_type": "KSampler", "inputs": {"model": ["loader", 0], "seed": 1, "steps": 2, "cfg": 1.0,
        "sampler_name": "euler", "scheduler": "simple", "positive": ["said", 0], "negative": ["not", 0],
        "latent_image": ["empty", 0], "denoise": 1.0}})"));
  for (const char* node : {"said", "out"}) {
    BOOST_TEST(!checked.inferred.calls.contains(node));
    BOOST_TEST(checked.made.calls.contains(node));
  }
  BOOST_TEST(checked.inferred.outputs.at("said.CONDITIONING") == "{}");
  BOOST_TEST(checked.inferred.outputs.at("out.LATENT") == checked.made.outputs.at("out.LATENT"));
}

BOOST_AUTO_TEST_SUITE_END()
