// Normalized Attention Guidance in whole runs against PyTorch (make_nag_goldens.py), and where it
// changes nothing.
#include "engine/base/text.h"
#include "tests/plugins/nodes/node_fixture.h"

using heddle::engine::cat;
using heddle::test::NodeFixture;

namespace {

std::string nag(const std::string& numbers, const std::string& from = "model") {
  return cat(R"("nag": {"class_type": "NAGuidance", "inputs": {"model": [")", from, R"(", 0], )",
             numbers, "}}, ");
}
constexpr const char* kDefaults = R"("nag_scale": 5.0, "nag_alpha": 0.5, "nag_tau": 1.5)";
constexpr const char* kFrom = R"("model": ["nag", 0])";

struct NagFixture : NodeFixture {
  heddle::test::TensorFile expected{here() / "nag_goldens.safetensors"};

  std::vector<float> drawn(const std::string& nodes, const std::string& changes) {
    return run(nodes + "\"out\": " + ksampler(changes) + ", " + kLook, {"out.LATENT"})
        .floats("out.LATENT", "samples");
  }
  void check(const std::vector<float>& values, const std::string& golden) const {
    const double error = heddle::test::relative_error(values, expected.floats(golden));
    BOOST_TEST(error < kTolerance, golden << ": relative error " << error);
  }
  // That it was said once, and this.
  void check_warning(const std::string& part) const {
    BOOST_REQUIRE(warnings.size() == 1);
    BOOST_TEST(warnings.front().find("NAGuidance changes nothing") != std::string::npos,
               warnings.front());
    BOOST_TEST(warnings.front().find(part) != std::string::npos, warnings.front());
  }
};

double difference(const std::vector<float>& a, const std::vector<float>& b) {
  return heddle::test::relative_error(a, b);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(attention_guidance, NagFixture)

BOOST_AUTO_TEST_CASE(attention_is_led_away_from_what_the_negative_conditioning_sees) {
  check(drawn(nag(kDefaults), kFrom), "nag");
  BOOST_TEST(warnings.empty());
}

BOOST_AUTO_TEST_CASE(at_cfg_1_the_negative_conditioning_is_seen_all_the_same) {
  check(drawn(nag(R"("nag_scale": 3.0, "nag_alpha": 0.25, "nag_tau": 3.7)"),
              R"("model": ["nag", 0], "cfg": 1, "denoise": 0.6, "latent_image": ["latent", 0])"),
        "nag_cfg_1");
  BOOST_TEST(warnings.empty());
}

BOOST_AUTO_TEST_CASE(both_sides_may_be_told_a_guidance_of_their_own) {
  const std::string dev =
      R"("dev": {"class_type": "UNETLoader", "inputs": {"unet_name": "guided.safetensors",
           "weight_dtype": "default"}},
         "told": {"class_type": "FluxGuidance", "inputs": {"conditioning": ["one", 0], "guidance": 2.0}}, )";
  check(drawn(dev + nag(kDefaults, "dev"),
              R"("model": ["nag", 0], "positive": ["told", 0], "cfg": 2.0, "steps": 3)"),
        "nag_guidance");
  BOOST_TEST(warnings.empty());
}

// Of several positive entries, those with as many tokens as the negative one.
BOOST_AUTO_TEST_CASE(entries_that_fit_the_negative_one_are_guided) {
  check(drawn(nag(kDefaults) +
                  R"("both": {"class_type": "ConditioningCombine", "inputs":
                       {"conditioning_1": ["one", 0], "conditioning_2": ["three", 0]}}, )",
              R"("model": ["nag", 0], "positive": ["both", 0])"),
        "nag_combined");
  check_warning("their texts have 7 and 5 tokens");
}

BOOST_AUTO_TEST_CASE(a_scale_of_1_and_an_alpha_of_0_change_nothing) {
  const std::vector<float> plain = drawn("", "");
  BOOST_TEST(difference(drawn(nag(R"("nag_scale": 1.0, "nag_alpha": 0.5, "nag_tau": 10.0)"), kFrom),
                        plain) < 1e-6);
  BOOST_TEST(difference(drawn(nag(R"("nag_scale": 9.0, "nag_alpha": 0.0, "nag_tau": 1.0)"), kFrom),
                        plain) < 1e-6);
  BOOST_TEST(difference(drawn(nag(kDefaults), kFrom), plain) > 0.01);
}

BOOST_AUTO_TEST_CASE(conditionings_that_cannot_be_seen_together_are_seen_apart_with_a_warning) {
  const std::vector<float> plain = drawn("", R"("negative": ["three", 0])");
  BOOST_TEST(drawn(nag(kDefaults), R"("model": ["nag", 0], "negative": ["three", 0])") == plain);
  check_warning("their texts have 5 and 7 tokens");

  const std::string alone =
      R"("guider": {"class_type": "BasicGuider", "inputs": {"model": ["nag", 0], "conditioning": ["one", 0]}},
         "noise": {"class_type": "RandomNoise", "inputs": {"noise_seed": 7}},
         "euler": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}},
         "levels": {"class_type": "BasicScheduler", "inputs": {"model": ["model", 0],
           "scheduler": "simple", "steps": 4, "denoise": 1.0}},
         "out": {"class_type": "SamplerCustomAdvanced", "inputs": {"noise": ["noise", 0],
           "guider": ["guider", 0], "sampler": ["euler", 0], "sigmas": ["levels", 0],
           "latent_image": ["empty", 0]}}, )";
  const std::vector<float> one = drawn("", R"("cfg": 1)");
  BOOST_TEST(run(nag(kDefaults) + alone + kLook, {"out.output"}).floats("out.output", "samples") ==
             one);
  check_warning("there is no negative conditioning");
}

BOOST_AUTO_TEST_CASE(a_lora_that_comes_later_is_in_the_guided_model) {
  const auto lora = [&](const std::string& from) {
    return cat(R"("lora": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": [")", from,
               R"(", 0], "lora_name": "kohya.safetensors", "strength_model": 1.0}}, )");
  };
  BOOST_TEST(drawn(nag(kDefaults) + lora("nag"), R"("model": ["lora", 0])") ==
             drawn(lora("model") + nag(kDefaults, "lora"), kFrom));
}

// The last evaluations, with less noise, are of the model without a block for the negative side:
// the two are not seen together there.
BOOST_AUTO_TEST_CASE(it_goes_together_with_other_patches) {
  const auto patched = [&](const std::string& type, const std::string& numbers) {
    return cat(nag(kDefaults), R"("more": {"class_type": ")", type,
               R"(", "inputs": {"model": ["nag", 0])", numbers, "}}, ");
  };
  const std::vector<float> guided = drawn(nag(kDefaults), kFrom);
  drawn(patched("RescaleCFG", R"(, "multiplier": 0.7)"), R"("model": ["more", 0])");
  BOOST_TEST(warnings.empty());
  const std::vector<float> less =
      drawn(patched("SkipLayerGuidanceDiTSimple", R"(, "double_layers": "1", "single_layers": "",
                                               "start_percent": 0.5, "end_percent": 1.0)"),
            R"("model": ["more", 0])");
  check_warning("they differ in model, hooks or area");
  BOOST_TEST(difference(less, guided) > 0.001);
}

BOOST_AUTO_TEST_CASE(qwen_image_is_guided_too) {
  const std::filesystem::path models = heddle::test::tests_folder() / "plugins/goldens/qwen_image";
  std::filesystem::create_symlink(models / "transformer/diffusion_pytorch_model.safetensors",
                                  folder / "models/diffusion_models/qwen.safetensors");
  const std::string flow = cat(
      R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": "qwen.safetensors",
            "weight_dtype": "default"}}, )",
      nag(kDefaults), R"("one": {"class_type": "test.conditioning", "inputs": {"path": ")",
      (models / "expected.safetensors").string(),
      R"(", "prefix": "in.long", "option": ""}},
         "two": {"class_type": "ConditioningZeroOut", "inputs": {"conditioning": ["one", 0]}},
         "empty": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 64, "height": 48, "batch_size": 1}},
         "out": )",
      ksampler(R"("model": ["nag", 0], "steps": 3, "cfg": 2.5)"), ", ", kLook, "}");
  check(run_whole(flow, {"out.LATENT"}).floats("out.LATENT", "samples"), "nag_qwen_image");
}

BOOST_AUTO_TEST_SUITE_END()
