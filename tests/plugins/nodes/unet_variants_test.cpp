// SDXL's variants from the prompt to the picture, by the nodes that their workflows have between a
// checkpoint and a sampler: Playground v2.5, LCM, turbo and a terminal SNR of zero, against
// schedulers of diffusers from the same noise (../goldens/make_unet_variant_goldens.py).
#include <cmath>

#include "engine/base/text.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/unet_fixture.h"

namespace heddle::test {
namespace {

using engine::cat;

constexpr double kLeastVariantDecibels = 70;

struct UnetVariants : UnetWorkflow {
  UnetVariants() {
    expected = TensorFile(tests_folder() / "plugins/goldens/unet_variants/expected.safetensors");
  }
  heddle::EngineOptions variant_options() const {
    heddle::EngineOptions options = engine_options();
    options.compute[test_device_kind()] = "f32";
    options.model_dirs.push_back(folder / "models");
    return options;
  }
  static std::string told(const char* type, const char* more) {
    return node("told", type, cat(R"("model": ["model", 0], )", more));
  }
  // What the node "drawn" makes, and its picture.
  static std::string with_picture(const std::string& drawn) {
    return drawn + node("picture", "VAEDecode", R"("samples": ["drawn", 0], "vae": ["model", 2])") +
           node("look", "test.look", R"("value": ["drawn", 0])") +
           R"("look_b": {"class_type": "test.look", "inputs": {"value": ["picture", 0]}})";
  }
  static std::string by_ksampler(const std::string& numbers, const char* model = "told") {
    return with_picture(
        cat("\"drawn\": ", ksampler(cat(numbers, R"(, "model": [")", model, R"(", 0])")), ", "));
  }
  static std::string by_turbo(int steps) {
    return with_picture(
        node("levels", "SDTurboScheduler",
             cat(R"("model": ["model", 0], "denoise": 1.0, "steps": )", steps)) +
        node("sampler", "KSamplerSelect", R"("sampler_name": "euler_ancestral")") +
        node("drawn", "SamplerCustom",
             R"("model": ["model", 0], "add_noise": true, "noise_seed": 7, "cfg": 1.0,
                "positive": ["one", 0], "negative": ["two", 0], "sampler": ["sampler", 0],
                "sigmas": ["levels", 0], "latent_image": ["empty", 0])"));
  }
  heddle::Results draw(const std::string& nodes, const char* latent = "drawn.LATENT") {
    heddle::Results results = run_whole("{" + nodes + "}", {latent, "picture.IMAGE"});
    for (const std::string& warning : warnings) BOOST_TEST(warning == "");
    return results;
  }
  void compare(const std::string& nodes, const std::string& name,
               const char* latent = "drawn.LATENT") {
    const heddle::Results results = draw(loader() + texts() + nodes, latent);
    const double error =
        relative_error(results.floats(latent, "samples"), expected.floats(name + ".latent"));
    const std::vector<float> made = few(results.floats("picture.IMAGE", "")),
                             wanted = expected.floats(name + ".picture");
    BOOST_TEST_REQUIRE(made.size() == wanted.size());
    double squares = 0;
    for (std::size_t i = 0; i < made.size(); ++i)
      squares += (double(made[i]) - wanted[i]) * (double(made[i]) - wanted[i]);
    const double decibels = -10 * std::log10(squares / double(made.size()));
    BOOST_TEST_MESSAGE(name << ": relative error " << error << ", " << decibels << " dB");
    BOOST_TEST(error < kTolerance, name << ": relative error " << error);
    BOOST_TEST(decibels >= kLeastVariantDecibels, name << ": " << decibels << " dB");
  }
};

constexpr const char* kPlayground =
    R"("sampling": "edm_playground_v2.5", "sigma_max": 80.0, "sigma_min": 0.002)";
constexpr const char* kZeroSnr = R"("sampling": "v_prediction", "zsnr": true)";

}  // namespace

BOOST_FIXTURE_TEST_SUITE(unet_variants, UnetVariants)

BOOST_AUTO_TEST_CASE(playground_equals_diffusers) {
  write("sdxl");
  const std::string playground = told("ModelSamplingContinuousEDM", kPlayground);
  compare(playground + by_ksampler(sampler("3.0", "euler", "karras")), "playground_euler");
  compare(playground + by_ksampler(sampler("3.0", "dpmpp_2m", "karras")), "playground_2m");
}

BOOST_AUTO_TEST_CASE(a_consistency_model_equals_diffusers) {
  write("sdxl");
  const std::string lcm = told("ModelSamplingDiscrete", R"("sampling": "lcm", "zsnr": false)");
  compare(lcm + by_ksampler(sampler("1.8", "lcm", "simple")), "lcm_simple");
  compare(lcm + by_ksampler(sampler("1.8", "lcm", "sgm_uniform", 7)), "lcm_uniform");
}

BOOST_AUTO_TEST_CASE(turbo_equals_diffusers) {
  write("sdxl");
  compare(by_turbo(1), "turbo_one", "drawn.output");
  compare(by_turbo(10), "turbo_ten", "drawn.output");
}

BOOST_AUTO_TEST_CASE(a_terminal_snr_of_zero_equals_diffusers) {
  write("sdxl");
  compare(told("ModelSamplingDiscrete", kZeroSnr) + by_ksampler(sampler("5.0", "euler", "normal")),
          "zero_snr");
}

// What marks in a file say and what the nodes say are the same.
BOOST_AUTO_TEST_CASE(marks_of_a_file_draw_what_the_nodes_do) {
  write("sdxl");
  const std::size_t plain_tensors = checkpoint.size();
  const auto bytes = [&](const std::string& file, const std::string& told, const char* model) {
    const std::string named = cat(R"("ckpt_name": ")", file, R"(.safetensors")"),
                      numbers = sampler("3.0", "euler", "karras", 2);
    const heddle::Results results = draw(node("model", "CheckpointLoaderSimple", named) + texts() +
                                         told + by_ksampler(numbers, model));
    std::vector<float> all = results.floats("drawn.LATENT", "samples");
    for (const float number : results.floats("picture.IMAGE", "")) all.push_back(number);
    return all;
  };
  const std::pair<std::vector<const char*>, std::string> kinds[] = {
      {{"edm_mean", "edm_std"}, told("ModelSamplingContinuousEDM", kPlayground)},
      {{"v_pred", "ztsnr"}, told("ModelSamplingDiscrete", kZeroSnr)}};
  for (const auto& [marks, by_node] : kinds) {
    checkpoint.resize(plain_tensors);
    for (const char* mark : marks) checkpoint.push_back({mark, "F32", {1}, bytes_of_floats({0})});
    write_file(cat("checkpoints/", marks.front()), checkpoint);
    const std::vector<float> made = bytes("drawn", by_node, "told");
    BOOST_TEST((bytes(marks.front(), "", "model") == made), marks.front());
    BOOST_TEST((bytes("drawn", "", "model") != made), marks.front());
  }
}

// A picture is read in these units, too, though its autoencoder is of a plain file.
BOOST_AUTO_TEST_CASE(a_picture_is_changed_in_the_latents_of_playground) {
  write("sdxl");
  checkpoint.push_back({"edm_mean", "F32", {4}, bytes_of_floats({0, 0, 0, 0})});
  write_file("checkpoints/marked", checkpoint);
  const auto drawn = [&](const char* file, const std::string& told, const char* model) {
    return draw(node("model", "CheckpointLoaderSimple", cat(R"("ckpt_name": ")", file, "\"")) +
                texts() + told +
                node("shown", "EmptyImage",
                     R"("width": 80, "height": 48, "batch_size": 1, "color": 8421631)") +
                node("encoded", "VAEEncode", R"("pixels": ["shown", 0], "vae": ["model", 2])") +
                by_ksampler(cat(sampler("3.0", "euler", "karras"),
                                R"(, "denoise": 0.5, "latent_image": ["encoded", 0])"),
                            model))
        .floats("picture.IMAGE", "");
  };
  const std::vector<float> marked = drawn("marked.safetensors", "", "model");
  const double error = relative_error(
      drawn("drawn.safetensors", told("ModelSamplingContinuousEDM", kPlayground), "told"), marked);
  BOOST_TEST(error < 1e-5, "relative error " << error);
  const double other =
      relative_error(drawn("drawn.safetensors",
                           told("ModelSamplingContinuousEDM",
                                R"("sampling": "edm", "sigma_max": 80.0, "sigma_min": 0.002)"),
                           "told"),
                     marked);
  BOOST_TEST(other > 1e-3, "in SDXL's units it is another by " << other);
}

BOOST_AUTO_TEST_CASE(steps_of_playground_are_shown_by_its_colours) {
  write("sdxl");
  checkpoint.push_back({"edm_mean", "F32", {4}, bytes_of_floats({0, 0, 0, 0})});
  write_file("checkpoints/marked", checkpoint);
  const auto shown = [&](const char* file, const std::string& told, const char* model) {
    std::vector<std::uint8_t> all;
    heddle::StartOptions options;
    options.previews = heddle::PreviewMethod::linear;
    options.observer = [&](const heddle::Event& event) {
      if (event.kind != heddle::Event::Kind::preview) return;
      const std::size_t count = std::size_t{3} * event.preview->width * event.preview->height;
      all.insert(all.end(), event.preview->pixels, event.preview->pixels + count);
    };
    const std::string flow =
        "{" + node("model", "CheckpointLoaderSimple", cat(R"("ckpt_name": ")", file, "\"")) +
        texts() + told + by_ksampler(sampler("3.0", "euler", "karras"), model) + "}";
    engine.start(engine.parse(flow), std::move(options)).wait();
    return all;
  };
  const std::vector<std::uint8_t> marked = shown("marked.safetensors", "", "model");
  BOOST_TEST(marked.size() == std::size_t{4 * 3 * 6 * 10});
  BOOST_TEST((shown("drawn.safetensors", told("ModelSamplingContinuousEDM", kPlayground), "told") ==
              marked));
}

// The encoders' tables of tokens are 25 MB.
BOOST_AUTO_TEST_CASE(playground_has_the_same_bytes_wherever_it_is_drawn) {
  write("sdxl");
  same_where_placed(variant_options(),
                    "{" + loader() + texts() + told("ModelSamplingContinuousEDM", kPlayground) +
                        by_ksampler(sampler("3.0", "dpmpp_2m", "karras")) + "}",
                    "KSampler", 16 << 20, {{"drawn.LATENT", "samples"}, {"picture.IMAGE", ""}});
}

BOOST_AUTO_TEST_CASE(variants_are_known_before_a_run) {
  write("sdxl");
  for (const std::string& nodes :
       {told("ModelSamplingContinuousEDM", kPlayground) +
            by_ksampler(sampler("3.0", "euler", "karras")),
        told("ModelSamplingDiscrete", R"("sampling": "lcm", "zsnr": false)") +
            by_ksampler(sampler("1.8", "lcm", "sgm_uniform")),
        by_turbo(2)}) {
    heddle::Engine::Data other(variant_options());
    check_inference(other, "{" + loader() + texts() + nodes + "}");
  }
}

BOOST_AUTO_TEST_CASE(latents_of_other_channels_are_refused_by_it) {
  write_file("diffusion_models/of_videos", seeded_model("flow", false, "wan22"));
  const std::string why = engine_refusal([&] {
    run_whole("{" +
                  node("model", "UNETLoader",
                       R"("unet_name": "of_videos.safetensors", "weight_dtype": "default")") +
                  told("ModelSamplingContinuousEDM", kPlayground) +
                  R"("look": {"class_type": "test.look", "inputs": {"value": ["told", 0]}}})",
              {"told.MODEL"});
  });
  for (const char* words : {"edm_playground_v2.5", "4 channels", "have 48", "Link Playground v2.5"})
    BOOST_TEST(why.find(words) != std::string::npos, "'" << words << "' is not in: " << why);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
