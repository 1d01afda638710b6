// Guidance by a model without some of its blocks, and by two models, in whole runs against PyTorch
// (make_guide_goldens.py).
#include "engine/base/text.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/node_fixture.h"

using heddle::engine::cat;
using heddle::test::check_inference;
using heddle::test::NodeFixture;

namespace {

struct SkipFixture : NodeFixture {
  heddle::test::TensorFile guided{here() / "guide_goldens.safetensors"};

  static std::string skipping(const std::string& type, const std::string& inputs) {
    return cat(R"("less": {"class_type": ")", type, R"(", "inputs": {"model": ["model", 0], )",
               inputs, "}}, ");
  }
  static std::string dit(const std::string& doubles, const std::string& singles,
                         const std::string& numbers) {
    return skipping("SkipLayerGuidanceDiT",
                    cat(R"("double_layers": ")", doubles, R"(", "single_layers": ")", singles,
                        "\", ", numbers));
  }
  static std::string simple(const std::string& doubles, const std::string& singles) {
    return skipping("SkipLayerGuidanceDiTSimple",
                    cat(R"("double_layers": ")", doubles, R"(", "single_layers": ")", singles,
                        R"(", "start_percent": 0.2, "end_percent": 0.7)"));
  }
  static constexpr const char* kPart =
      R"("scale": 2.5, "start_percent": 0.2, "end_percent": 0.7, "rescaling_scale": 0.0)";
  static constexpr const char* kLess = R"("model": ["less", 0])";

  std::vector<float> drawn(const std::string& nodes, const std::string& changes) {
    return run(nodes + "\"out\": " + ksampler(changes) + ", " + kLook, {"out.LATENT"})
        .floats("out.LATENT", "samples");
  }
  void check(const std::vector<float>& values, const std::string& golden) {
    const double error = heddle::test::relative_error(values, guided.floats(golden));
    BOOST_TEST(error < kTolerance, golden << ": relative error " << error);
  }
  // Of a guider, drawn as KSampler draws.
  static std::string two_models(const std::string& cfg) {
    return R"("dev": {"class_type": "UNETLoader", "inputs": {"unet_name": "guided.safetensors",
                "weight_dtype": "default"}},
              "guider": {"class_type": "DualModelGuider", "inputs": {"model": ["model", 0],
                "positive": ["one", 0], "model_negative": ["dev", 0], "negative": ["two", 0], "cfg": )" +
           cfg + R"(}},
              "noise": {"class_type": "RandomNoise", "inputs": {"noise_seed": 7}},
              "euler": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}},
              "levels": {"class_type": "BasicScheduler", "inputs": {"model": ["model", 0],
                "scheduler": "simple", "steps": 4, "denoise": 1.0}},
              "out": {"class_type": "SamplerCustomAdvanced", "inputs": {"noise": ["noise", 0],
                "guider": ["guider", 0], "sampler": ["euler", 0], "sigmas": ["levels", 0],
                "latent_image": ["empty", 0]}}, )" +
           std::string(kLook);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(skip_layers, SkipFixture)

BOOST_AUTO_TEST_CASE(guidance_leads_away_from_a_model_without_blocks) {
  check(drawn(dit("1", "layers: 00", kPart), kLess), "skip_layers");
  check(drawn(dit("1", "0", R"("scale": 2.5, "start_percent": 0.0, "end_percent": 1.0,
                               "rescaling_scale": 0.6)"),
              kLess),
        "skip_layers_rescaled");
  check(drawn(skipping("SkipLayerGuidanceSD3",
                       R"("layers": "0, 1", "scale": 2.0, "start_percent": 0.0,
                                                  "end_percent": 1.0)"),
              kLess),
        "skip_double_layers");
}

BOOST_AUTO_TEST_CASE(the_negative_side_can_be_without_blocks) {
  check(drawn(simple("1", "0"), kLess), "skip_layers_of_negative");
}

BOOST_AUTO_TEST_CASE(layers_that_are_not_named_or_not_there_are_not_skipped) {
  const std::vector<float> plain = drawn("", "");
  BOOST_TEST(drawn(dit("none", "", kPart), kLess) == plain);
  BOOST_TEST(drawn(simple("", ""), kLess) == plain);
  BOOST_TEST(drawn(simple("7, 8, 9", "7"), kLess) == plain);
}

BOOST_AUTO_TEST_CASE(a_lora_that_comes_later_is_in_both_models) {
  const auto patched = [&](const std::string& from, const std::string& to) {
    return cat("\"", to, R"(": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": [")", from,
               R"(", 0], "lora_name": "kohya.safetensors", "strength_model": 1.0}}, )");
  };
  const std::string after = dit("1", "0", kPart) + patched("less", "both");
  std::string before = patched("model", "both") + dit("1", "0", kPart);
  const std::string unpatched =
      R"("less": {"class_type": "SkipLayerGuidanceDiT", "inputs": {"model": ["model")";
  before.replace(before.find(unpatched), unpatched.size(),
                 R"("less": {"class_type": "SkipLayerGuidanceDiT", "inputs": {"model": ["both")");
  BOOST_TEST(drawn(after, R"("model": ["both", 0])") == drawn(before, kLess));
}

BOOST_AUTO_TEST_CASE(two_models_see_a_side_each) {
  check(run(two_models("3.0"), {"out.output"}).floats("out.output", "samples"), "two_models");
  BOOST_TEST(run(two_models("1.0"), {"out.output"}).floats("out.output", "samples") ==
             drawn("", R"("cfg": 1)"));
}

BOOST_AUTO_TEST_CASE(what_is_asked_of_several_models_is_told_before) {
  NodeFixture models;
  heddle::EngineOptions options = heddle::test::engine_options();
  options.compute[heddle::test::test_device_kind()] = "f32";
  options.model_dirs.push_back(models.folder / "models");
  const std::string encoded =
      R"({"model": {"class_type": "DiffusersLoader", "inputs": {"model_path": "random"}},
          "one": {"class_type": "CLIPTextEncode", "inputs": {"text": "a house", "clip": ["model", 1]}},
          "two": {"class_type": "CLIPTextEncode", "inputs": {"text": "by night", "clip": ["model", 1]}},
          "empty": {"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 48, "batch_size": 1}}, )";
  for (const std::string& nodes :
       {dit("1", "0", kPart) + "\"out\": " + ksampler(kLess) + ", " + kLook,
        simple("1", "0") + "\"out\": " + ksampler(kLess) + ", " + kLook, two_models("3.0")}) {
    heddle::Engine::Data engine(options);
    check_inference(engine, encoded + nodes + "}");
  }
}

BOOST_AUTO_TEST_SUITE_END()
