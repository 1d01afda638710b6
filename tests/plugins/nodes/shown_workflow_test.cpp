// Workflows with UNets that are shown a picture, against PyTorch
// (../goldens/make_shown_goldens.py): Lotus, as ComfyUI's templates have it, and Stable Diffusion's
// x4 upscaler out of a checkpoint as published.
#include <cmath>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/unet_fixture.h"
#include "tests/support/shown_models.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct ShownWorkflow : UnetWorkflow {
  static constexpr double kLeastDecibels = 70;
  const std::filesystem::path shown_golden =
      tests_folder() / "plugins/goldens/shown/expected.safetensors";

  ShownWorkflow() { expected = TensorFile(shown_golden); }

  std::string pixels(const char* name) const {
    return node("pixels", "test.image",
                cat(R"("path": ")", shown_golden.string(), R"(", "name": ")", name, "\""));
  }
  // One whose size is known before a run.
  static std::string told_picture(int width, int height) {
    return node("pixels", "EmptyImage",
                cat(R"("width": )", width, R"(, "height": )", height,
                    R"(, "batch_size": 1, "color": 8421504)"));
  }
  heddle::EngineOptions same_models() const {
    heddle::EngineOptions options = engine_options();
    options.compute[test_device_kind()] = "f32";
    options.model_dirs.push_back(folder / "models");
    options.output_dir = folder / "out";
    return options;
  }
  // PSNR of pictures from 0 to 1.
  void compare_picture(const heddle::Results& results, const std::string& name,
                       const char* picture) {
    for (const std::string& warning : warnings) BOOST_TEST(warning == "");
    const std::vector<float> found = results.floats(picture, ""),
                             wanted = expected.floats(name + ".picture");
    BOOST_TEST_REQUIRE(found.size() == wanted.size());
    double squares = 0;
    for (std::size_t i = 0; i < found.size(); ++i)
      squares += std::pow(double(found[i]) - double(wanted[i]), 2);
    const double decibels = -10 * std::log10(squares / double(found.size()) + 1e-30);
    BOOST_TEST_MESSAGE(name << ": " << decibels << " dB");
    BOOST_TEST(decibels >= kLeastDecibels, name << ": " << decibels << " dB");
  }
};

struct LotusWorkflow : ShownWorkflow {
  void write_text(const std::vector<FileTensor>& tensors) const {
    write_file("embeddings/lotus_conditioning", tensors);
  }
  void write_models(bool original) const {
    std::vector<FileTensor> unet = shown_model("lotus");
    if (original) name_shown_as_original(unet);
    write_file("diffusion_models/lotus-depth-d-v1-1", unet);
    write_file("vae/vae-ft-mse-840000-ema-pruned", unet_model("vae"));
    const TensorFile::Entry& text = expected.at("lotus_text");
    write_text({{"conditioning", text.dtype, text.shape, text.bytes}});
  }
  std::string flow(const char* first_sigma = "999.0000000000002") const {
    return flow_of(pixels("lotus_drawn.pixels"), first_sigma);
  }
  static std::string flow_of(const std::string& picture, const char* first_sigma = "999.0") {
    return cat(
        "{", picture,
        node("unet", "UNETLoader",
             R"("unet_name": "lotus-depth-d-v1-1.safetensors", "weight_dtype": "default")"),
        node("vae", "VAELoader", R"("vae_name": "vae-ft-mse-840000-ema-pruned.safetensors")"),
        node("encoded", "VAEEncode", R"("pixels": ["pixels", 0], "vae": ["vae", 0])"),
        node("text", "LotusConditioning", ""), node("noise", "DisableNoise", ""),
        node("guider", "BasicGuider", R"("model": ["unet", 0], "conditioning": ["text", 0])"),
        node("euler", "KSamplerSelect", R"("sampler_name": "euler")"),
        node("steps", "BasicScheduler",
             R"("model": ["unet", 0], "scheduler": "normal", "steps": 1, "denoise": 1)"),
        node("sigmas", "SetFirstSigma", cat(R"("sigmas": ["steps", 0], "sigma": )", first_sigma)),
        node("sampled", "SamplerCustomAdvanced",
             R"("noise": ["noise", 0], "guider": ["guider", 0], "sampler": ["euler", 0],
                "sigmas": ["sigmas", 0], "latent_image": ["encoded", 0])"),
        node("picture", "VAEDecode", R"("samples": ["sampled", 0], "vae": ["vae", 0])"),
        node("inverted", "ImageInvert", R"("image": ["picture", 0])"),
        node("drawn", "test.look", R"("value": ["sampled", 0])"),
        R"("look": {"class_type": "test.look", "inputs": {"value": ["inverted", 0]}}})");
  }
};

struct UpscalerWorkflow : ShownWorkflow {
  UpscalerWorkflow() {
    std::vector<FileTensor> unet = shown_model("x4");
    name_shown_as_original(unet, "model.diffusion_model.");
    add("", std::move(unet));
    add("first_stage_model.", shown_model("x4_vae"));
    add("", as_open_clip(unet_model("clip_h"), "cond_stage_model.model."));
    write_file("checkpoints/drawn", checkpoint);
  }
  std::string flow(const char* ratio, const char* noise) const {
    return flow_of(pixels("x4_drawn.pixels"), ratio, noise);
  }
  static std::string flow_of(const std::string& picture, const char* ratio, const char* noise) {
    return cat("{", picture, loader(), text("one", "a photo of a cat", R"(["model", 1])"),
               text("two", "", R"(["model", 1])"),
               node("larger", "SD_4XUpscale_Conditioning",
                    cat(R"("images": ["pixels", 0], "positive": ["one", 0], "negative": ["two", 0],
                        "scale_ratio": )",
                        ratio, R"(, "noise_augmentation": )", noise)),
               drawing(cat(sampler("5.0", "dpmpp_2m", "karras"),
                           R"(, "positive": ["larger", 0], "negative": ["larger", 1],
                           "latent_image": ["larger", 2])")),
               "}");
  }
  void draws(const char* name, const char* ratio, const char* noise) {
    const heddle::Results results =
        run_whole(flow(ratio, noise), {"drawn.LATENT", "picture.IMAGE"});
    same(results.floats("drawn.LATENT", "samples"), std::string(name) + ".latent");
    compare_picture(results, name, "picture.IMAGE");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(lotus_workflows, LotusWorkflow)

BOOST_AUTO_TEST_CASE(depth_equals_pytorch) {
  for (const bool original : {false, true}) {
    write_models(original);
    for (const char* first : {"999.0000000000002", "10000"}) {
      const heddle::Results results =
          run_whole(flow(first), {"sampled.denoised_output", "inverted.IMAGE", "sampled.output"});
      same(results.floats("sampled.output", "samples"), "lotus_drawn.latent");
      same(results.floats("sampled.denoised_output", "samples"), "lotus_drawn.latent");
      compare_picture(results, "lotus_drawn", "inverted.IMAGE");
    }
  }
  heddle::Engine::Data other(same_models());
  check_inference(other, flow_of(told_picture(80, 48)));
}

BOOST_AUTO_TEST_CASE(without_its_text_a_way_to_it_is_said) {
  write_models(false);
  const auto refused = [&] {
    return engine_refusal([&] { run_whole(flow(), {"inverted.IMAGE"}); });
  };
  write_text({seeded_tensor("conditioning", {1, 1, 64})});
  BOOST_TEST(refused().find("not one text of two or more tokens") != std::string::npos);
  std::filesystem::remove(folder / "models/embeddings/lotus_conditioning.safetensors");
  BOOST_TEST(refused().find("SaveConditioning") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(upscaler_workflows, UpscalerWorkflow)

BOOST_AUTO_TEST_CASE(pictures_with_noise_equal_pytorch) {
  draws("x4_drawn", "4.0", "0.05");
  heddle::Engine::Data other(same_models());
  check_inference(other, flow_of(told_picture(17, 11), "4.3", "0.05"));
}

// The picture is cut to the shape of the larger one, and resized to a quarter of it.
BOOST_AUTO_TEST_CASE(pictures_of_another_size_equal_pytorch) { draws("x4_larger", "4.3", "0.0"); }

BOOST_AUTO_TEST_CASE(what_is_too_small_is_refused) {
  const std::string why = engine_refusal([&] { run_whole(flow("0.2", "0.0"), {"picture.IMAGE"}); });
  BOOST_TEST(why.find("17 x 11 pixels becomes less than 4") != std::string::npos, why);
}

BOOST_AUTO_TEST_SUITE_END()
