// What nodes tell samplers and models beside the text: levels of single families, no guidance, how
// strong the noise is, what a model is shown. Numbers are PyTorch's (make_guide_goldens.py).
#include "engine/base/text.h"
#include "tests/plugins/nodes/node_fixture.h"

using heddle::engine::cat;
using heddle::test::NodeFixture;

namespace {

struct GuideFixture : NodeFixture {
  heddle::test::TensorFile guided{here() / "guide_goldens.safetensors"};

  static std::string node(const std::string& name, const std::string& type,
                          const std::string& inputs) {
    return cat("\"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs, "}}, ");
  }
  static std::string dev() {
    return node("dev", "UNETLoader",
                R"("unet_name": "guided.safetensors", "weight_dtype": "default")");
  }

  void check(const std::vector<float>& values, const std::string& golden, double tolerance) {
    const double error = heddle::test::relative_error(values, guided.floats(golden));
    BOOST_TEST(error < tolerance, golden << ": relative error " << error);
  }
  void check_run(const std::string& nodes, const std::string& changes, const std::string& golden) {
    const std::string text = nodes + "\"out\": " + ksampler(changes) + ", " + kLook;
    check(run(text, {"out.LATENT"}).floats("out.LATENT", "samples"), golden, kTolerance);
  }
  std::vector<float> levels(const std::string& nodes) {
    return run(nodes + kLook, {"out.SIGMAS"}).floats("out.SIGMAS");
  }
  // The first entry of a CONDITIONING as text.
  std::string entry(const std::string& nodes, const std::string& list) {
    const std::string text =
        nodes + node("first", "test.first", cat(R"("list": [")", list, "]")) +
        R"("show": {"class_type": "PreviewAny", "inputs": {"source": ["first", 0]}})";
    return run(text, {}).ui();
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(guides, GuideFixture)

BOOST_AUTO_TEST_CASE(families_have_levels_of_their_own) {
  constexpr double kSingle = 1e-6;
  check(levels(node("out", "Flux2Scheduler", R"("steps": 20, "width": 1024, "height": 1024)")),
        "flux2.few", kSingle);
  check(levels(node("out", "Flux2Scheduler", R"("steps": 4, "width": 1536, "height": 1024)")),
        "flux2.many", kSingle);
  check(levels(node("out", "Ideogram4Scheduler",
                    R"("steps": 20, "width": 1024, "height": 1024, "mu": 0.0, "std": 1.75)")),
        "ideogram4.plain", kSingle);
  check(levels(node("out", "Ideogram4Scheduler",
                    R"("steps": 7, "width": 512, "height": 768, "mu": -0.5, "std": 0.7)")),
        "ideogram4.moved", kSingle);
  const std::string shifts = R"("max_shift": 2.05, "base_shift": 0.95, )";
  check(levels(node("out", "LTXVScheduler",
                    shifts + R"("steps": 8, "stretch": false, "terminal": 0.1)")),
        "ltxv.plain", kSingle);
  // One item of 6 x 8 cells; the last level but one is stretched to 0.
  check(levels(node(
            "out", "LTXVScheduler",
            shifts + R"("steps": 3, "stretch": true, "terminal": 0.0, "latent": ["latent", 0])")),
        "ltxv.to_the_end", kSingle);
}

BOOST_AUTO_TEST_CASE(a_models_levels_follow_a_latent_or_a_cosine) {
  check_run(dev() +
                node("sized", "ModelSamplingLTXV",
                     R"("model": ["dev", 0], "max_shift": 2.05, "base_shift": 0.95,
                            "latent": ["latent", 0])") +
                node("bare", "FluxDisableGuidance", R"("conditioning": ["one", 0])"),
            R"("model": ["sized", 0], "cfg": 1, "steps": 3, "positive": ["bare", 0])",
            "ltxv_model");
  check(
      levels(
          node("cascade", "ModelSamplingStableCascade", R"("model": ["model", 0], "shift": 2.0)") +
          node("out", "BasicScheduler",
               R"("model": ["cascade", 0], "scheduler": "simple", "steps": 5, "denoise": 1.0)")),
      "cascade", 1e-5);
}

BOOST_AUTO_TEST_CASE(a_guided_model_can_be_told_no_guidance) {
  const std::string bare = node("bare", "FluxDisableGuidance", R"("conditioning": ["one", 0])");
  const std::string run_of_dev = R"("model": ["dev", 0], "cfg": 1, "steps": 3, "positive": )";
  check_run(dev() + bare, run_of_dev + R"(["bare", 0])", "unguided");
  // The last word counts.
  const auto drawn = [&](const std::string& nodes, const std::string& list) {
    return run(dev() + nodes + "\"out\": " + ksampler(run_of_dev + list) + ", " + kLook,
               {"out.LATENT"})
        .floats("out.LATENT", "samples");
  };
  const std::string told = R"("guidance": 2.0, "conditioning": )";
  BOOST_TEST(
      drawn(bare + node("told", "FluxGuidance", told + R"(["bare", 0])"), R"(["told", 0])") ==
      drawn(node("told", "FluxGuidance", told + R"(["one", 0])"), R"(["told", 0])"));
}

BOOST_AUTO_TEST_CASE(noise_lies_on_a_latent_as_levels_say) {
  const auto noised = [&](const std::string& levels) {
    return run(node("fresh", "RandomNoise", R"("noise_seed": 9)") +
                   node("levels", "ManualSigmas", cat(R"("sigmas": ")", levels, "\"")) +
                   node("out", "AddNoise",
                        R"("model": ["model", 0], "noise": ["fresh", 0], "sigmas": ["levels", 0],
                           "latent_image": ["latent", 0])") +
                   kLook,
               {"out.LATENT"})
        .floats("out.LATENT", "samples");
  };
  check(noised("0.75"), "noised", 1e-6);
  check(noised("1, 0.5, 0.25"), "noised", 1e-6);
  BOOST_TEST(noised("") == goldens.floats("in.latent"));
}

BOOST_AUTO_TEST_CASE(a_model_says_how_strong_its_noise_is) {
  check_run(node("loud", "ModelNoiseScale", R"("model": ["model", 0], "noise_scale": 2.0)"),
            R"("model": ["loud", 0], "cfg": 1, "sampler_name": "euler_ancestral")", "noise_scale");
}

BOOST_AUTO_TEST_CASE(a_model_that_is_shown_no_pictures_refuses_them) {
  const std::string shown =
      node("once", "ReferenceLatent", R"("conditioning": ["one", 0], "latent": ["latent", 0])") +
      node("twice", "ReferenceLatent", R"("conditioning": ["once", 0], "latent": ["empty", 0])") +
      node("way", "FluxKontextMultiReferenceLatentMethod",
           R"("conditioning": ["twice", 0], "reference_latents_method": "uxo/uno")");
  write_wider_model("canny");
  const std::string text = heddle::test::engine_refusal([&] {
    run(shown +
            node("wider", "UNETLoader",
                 R"("unet_name": "canny.safetensors", "weight_dtype": "default")") +
            "\"out\": " + ksampler(R"("positive": ["way", 0], "model": ["wider", 0])") + ", " +
            kLook,
        {"out.LATENT"});
  });
  BOOST_TEST(text.find("'reference_latents'") != std::string::npos, text);
  const std::string seen = entry(shown, R"(way", 0)");
  BOOST_TEST(seen.find("uxo") != std::string::npos, seen);
  BOOST_TEST(seen.find("uxo/uno") == std::string::npos, seen);
  // Nothing that is shown changes nothing.
  check_run(node("none", "ReferenceLatent", R"("conditioning": ["one", 0])") + dev() +
                node("bare", "FluxDisableGuidance", R"("conditioning": ["none", 0])"),
            R"("model": ["dev", 0], "cfg": 1, "steps": 3, "positive": ["bare", 0])", "unguided");
}

BOOST_AUTO_TEST_CASE(a_rate_of_pictures_is_told_to_both) {
  const std::string told =
      node("told", "LTXVConditioning",
           R"("positive": ["one", 0], "negative": ["two", 0], "frame_rate": 12.5)");
  for (const char* list : {R"(told", 0)", R"(told", 1)"}) {
    const std::string seen = entry(told, list);
    BOOST_TEST(seen.find("frame_rate") != std::string::npos, seen);
    BOOST_TEST(seen.find("12.5") != std::string::npos, seen);
  }
}

BOOST_AUTO_TEST_CASE(a_latent_takes_a_part_of_another) {
  const std::vector<float> blended =
      run(node("item", "LatentFromBatch",
               R"("samples": ["latent", 0], "batch_index": 1, "length": 1)") +
              node("cut", "LatentCut",
                   R"("samples": ["item", 0], "dim": "x", "index": 0, "amount": 5)") +
              node("blend", "LatentOperationBlend", R"("reference": ["cut", 0], "strength": 0.3)") +
              node("out", "LatentApplyOperation",
                   R"("samples": ["latent", 0], "operation": ["blend", 0])") +
              kLook,
          {"out.LATENT"})
          .floats("out.LATENT", "samples");
  check(blended, "blended", 1e-6);
}

BOOST_AUTO_TEST_SUITE_END()
