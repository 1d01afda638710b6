// The model families on tiny models with random weights, whole and through the engine, against what
// diffusers and transformers make of the same files (make_random_models.py). Needs no trained
// model.
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"

using namespace heddle::test;

namespace {

// Hundreds of f32 roundings in another order than PyTorch's; a wrong term gives 1e-2 or more.
constexpr double kRandomTolerance = 5e-6;
// The timestep embedding takes sines of up to 900 radians, where the last bit of a frequency is
// 5e-5: PyTorch's exp() and the C library's differ by that bit. Replacing one by the other in
// PyTorch moves its result by 7e-6.
constexpr double kTimestepTolerance = 2e-5;

std::filesystem::path folder() { return tests_folder() / "plugins/goldens/random"; }

struct RandomModelsFixture {
  ModelProbe probe;
  TensorFile expected{folder() / "expected.safetensors"};
  heddle::engine::Json configs =
      heddle::engine::parse_json(read_text(folder() / "configs.json"), "configs.json");

  std::string config(const char* name) const {
    return heddle::engine::write_json(*configs.find(name));
  }

  heddle::Results call(const char* file, const char* role, const std::string& config,
                       const char* prefix, const char* without = "") {
    return probe.call(
        {folder() / file, role, config, folder() / "expected.safetensors", prefix, without});
  }

  // An output of one step against a golden, or against one row of it.
  void compare(const heddle::Results& results, const std::string& output, const std::string& golden,
               int step = 0, int steps = 1, double tolerance = kRandomTolerance) const {
    const std::vector<float> all = expected.floats(golden);
    const std::size_t row = all.size() / std::size_t(steps);
    const std::vector<float> wanted(all.begin() + std::ptrdiff_t(row * std::size_t(step)),
                                    all.begin() + std::ptrdiff_t(row * std::size_t(step + 1)));
    const double error = relative_error(
        results.floats("model.outputs", output + "." + std::to_string(step)), wanted);
    BOOST_TEST(error < tolerance, output << " against " << golden << ", step " << step
                                         << ": relative error " << error);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(random_models, RandomModelsFixture)

BOOST_AUTO_TEST_CASE(flux_from_diffusers_names_equals_diffusers_at_every_step) {
  const heddle::Results results =
      call("flux_diffusers.safetensors", "diffusion_model", config("flux"), "flux.");
  for (int step = 0; step < 3; ++step)
    compare(results, "out", "flux.out", step, 3, kTimestepTolerance);
}

BOOST_AUTO_TEST_CASE(flux_without_a_config_reads_its_dimensions_off_the_tensors) {
  const heddle::Results results =
      call("flux_diffusers.safetensors", "diffusion_model", "", "flux.");
  for (int step = 0; step < 3; ++step)
    compare(results, "out", "flux.out", step, 3, kTimestepTolerance);
}

BOOST_AUTO_TEST_CASE(flux_from_original_names_equals_diffusers_with_guidance) {
  const heddle::Results results = call("flux_original.safetensors", "diffusion_model", "", "flux.");
  for (int step = 0; step < 3; ++step)
    compare(results, "out", "flux.out_guided", step, 3, kTimestepTolerance);
}

BOOST_AUTO_TEST_CASE(flux_takes_a_guidance_of_three_and_a_half_when_none_is_given) {
  const heddle::Results results =
      call("flux_original.safetensors", "diffusion_model", "", "flux.", "guidance");
  compare(results, "out", "flux.out_guided", 1, 3, kTimestepTolerance);
}

BOOST_AUTO_TEST_CASE(flux_takes_odd_sides_and_one_conditioning_for_a_batch) {
  const heddle::Results results =
      call("flux_diffusers.safetensors", "diffusion_model", config("flux"), "flux_odd.");
  for (int step = 0; step < 3; ++step)
    compare(results, "out", "flux_odd.out", step, 3, kTimestepTolerance);
}

BOOST_AUTO_TEST_CASE(clip_gives_last_penultimate_pooled_and_projected_states) {
  const heddle::Results results = call("clip.safetensors", "text_encoder", config("clip"), "clip.");
  for (const char* name : {"last_hidden", "penultimate", "pooled", "projected"})
    compare(results, name, std::string("clip.") + name);
}

BOOST_AUTO_TEST_CASE(t5_shares_the_first_layers_position_bias) {
  compare(call("t5.safetensors", "text_encoder", config("t5"), "t5."), "last_hidden",
          "t5.last_hidden");
}

BOOST_AUTO_TEST_CASE(autoencoder_decodes_and_encodes_under_both_names) {
  for (const char* file : {"vae_diffusers.safetensors", "vae_original.safetensors"}) {
    compare(call(file, "vae.decoder", config("vae"), "vae."), "image", "vae.image");
    const heddle::Results encoded = call(file, "vae.encoder", config("vae"), "vae_encoder.");
    compare(encoded, "mean", "vae_encoder.mean");
    compare(encoded, "logvar", "vae_encoder.logvar");
  }
}

BOOST_AUTO_TEST_CASE(settings_say_what_readers_of_the_model_need) {
  const auto settings = [&](const heddle::Results& results) {
    return heddle::engine::parse_json(results.text("model.settings"), "settings");
  };
  const auto flux = settings(call("flux_original.safetensors", "diffusion_model", "", "flux."));
  BOOST_TEST(heddle::engine::write_json(*flux.find("guidance_embedded")) == "true");
  BOOST_TEST(heddle::engine::write_json(*flux.find("latent_channels")) == "4");
  const auto vae = settings(call("vae_original.safetensors", "vae.decoder", config("vae"), "vae."));
  BOOST_TEST(heddle::engine::write_json(*vae.find("scaling_factor")) == "0.5");
  BOOST_TEST(heddle::engine::write_json(*vae.find("downscale")) == "2");
}

BOOST_AUTO_TEST_SUITE_END()
