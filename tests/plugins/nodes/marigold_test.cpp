// Marigold v2: Qwen-Image Edit that makes of a picture its depth, its normals or its albedo, with
// the nodes of ComfyUI's templates, against PyTorch (../goldens/make_marigold_goldens.py).
#include <cmath>

#include "tests/plugins/nodes/edit_fixture.h"
#include "tests/plugins/nodes/infer_check.h"

using heddle::engine::cat;
using namespace heddle::test;

namespace {

constexpr const char* kKinds[] = {"depth", "normals", "albedo"};

struct MarigoldFixture : EditFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/marigold/expected.safetensors";
  TensorFile expected{golden};

  MarigoldFixture() {
    add("diffusion_models/qwen_image_edit_2509", seeded_model("qwen_image.transformer"));
    add("vae/marigold", seeded_model("qwen_image.vae"));
    const TensorFile::Entry& context = expected.at("conditioning");
    add("embeddings/marigold", {{"conditioning", context.dtype, context.shape, context.bytes}});
  }
  std::string estimate(const std::string& kind) const {
    return cat(
        R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": "qwen_image_edit_2509.safetensors", "weight_dtype": "default"}})",
        node("vae", "VAELoader", R"("vae_name": "marigold.safetensors")"),
        node("one", "LoadImage", R"("image": "one.png")"),
        node("sampled", "ModelSamplingAuraFlow",
             R"("model": ["model", 0], "shift": 1.73, "sampling": "img_to_img_velocity")"),
        node("text", "ConditioningLoader", R"("conditioning_name": "marigold.safetensors")"),
        node("noise", "DisableNoise", ""),
        node("euler", "KSamplerSelect", R"("sampler_name": "euler")"),
        node("guide", "BasicGuider", R"("model": ["sampled", 0], "conditioning": ["text", 0])"),
        node("levels", "ManualSigmas", R"("sigmas": "0.5, 0")"),
        node("seen", "VAEEncode", R"("pixels": ["one", 0], "vae": ["vae", 0])"),
        node(
            "drawn", "SamplerCustomAdvanced",
            R"("noise": ["noise", 0], "guider": ["guide", 0], "sampler": ["euler", 0], "sigmas": ["levels", 0], "latent_image": ["seen", 0])"),
        node("decoded", "VAEDecode", R"("samples": ["drawn", 0], "vae": ["vae", 0])"),
        node("made", "MarigoldV2PostProcess",
             cat(R"("image": ["decoded", 0], "prediction": ")", kind, "\"")),
        node("look", "test.look", R"("value": ["made", 0])"), "}");
  }
  std::string processed(const std::string& kind) const {
    return cat(R"({"given": {"class_type": "test.image", "inputs": {"name": "post.in", "path": ")",
               golden.string(), R"("}})",
               node("made", "MarigoldV2PostProcess",
                    cat(R"("image": ["given", 0], "prediction": ")", kind, "\"")),
               node("look", "test.look", R"("value": ["made", 0])"), "}");
  }
  heddle::Results run_to(const std::string& flow, std::vector<std::string> keep) {
    engine.emplace(options());
    return engine->start(engine->parse(flow), {{}, std::move(keep)}).wait();
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(marigold, MarigoldFixture)

BOOST_AUTO_TEST_CASE(numbers_become_pictures_as_in_pytorch) {
  for (const std::string kind : kKinds) {
    const std::vector<float> made = run_to(processed(kind), {"made.IMAGE"}).floats("made.IMAGE"),
                             wanted = expected.floats("post." + kind);
    BOOST_TEST_REQUIRE(made.size() == wanted.size());
    double most = 0;
    for (std::size_t i = 0; i < made.size(); ++i)
      most = std::max(most, std::fabs(double(made[i]) - wanted[i]));
    BOOST_TEST_MESSAGE(kind << ": at most " << most);
    BOOST_TEST(most <= 2e-6, kind << ": " << most);
  }
}

BOOST_AUTO_TEST_CASE(a_picture_becomes_an_estimate_in_one_step_as_in_pytorch) {
  for (const std::string kind : kKinds) {
    const heddle::Results results = run_to(estimate(kind), {"drawn.output", "made.IMAGE"});
    const double error =
        relative_error(results.floats("drawn.output", "samples"), expected.floats("latent"));
    BOOST_TEST_MESSAGE("the latent: relative error " << error);
    BOOST_TEST(error < 1e-4, "the latent: relative error " << error);
    const std::vector<float> made = results.floats("made.IMAGE"), wanted = expected.floats(kind);
    BOOST_TEST_REQUIRE(made.size() == wanted.size());
    double sum = 0;
    for (std::size_t i = 0; i < made.size(); ++i)
      sum += (double(made[i]) - wanted[i]) * (double(made[i]) - wanted[i]);
    const double decibels = -10 * std::log10(sum / double(made.size()));
    BOOST_TEST_MESSAGE(kind << ": " << decibels << " dB");
    BOOST_TEST(decibels >= 70, kind << ": " << decibels << " dB");
  }
}

BOOST_AUTO_TEST_CASE(calls_and_tensors_are_told_before_a_run) {
  for (const char* kind : {"depth", "albedo"}) {
    heddle::EngineOptions planned = options();
    planned.output_dir = folder / "told";
    heddle::Engine::Data told(planned);
    check_inference(told, estimate(kind));
  }
}

BOOST_AUTO_TEST_SUITE_END()
