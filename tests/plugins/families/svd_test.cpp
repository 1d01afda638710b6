// Stable Video Diffusion's UNet and autoencoder with weights that follow from their names, through
// the engine, against what diffusers makes of the same ones (../goldens/make_svd_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/svd_models.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

// diffusers divides some norms of frames by another epsilon than the published model.
constexpr double kSvdTolerance = 1e-4;
constexpr int kSvdSteps = 3;

struct SvdFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden = tests_folder() / "plugins/goldens/svd/expected.safetensors";
  TensorFile expected{golden};

  std::filesystem::path write(const std::vector<FileTensor>& tensors) const {
    const std::filesystem::path path = temporary / "svd.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  heddle::Results call(const std::vector<FileTensor>& tensors, const char* role,
                       const std::string& prefix, const std::string& without = "") {
    return probe.call({write(tensors), role, "", golden, prefix + ".", without});
  }
  std::string refusal(const std::vector<FileTensor>& tensors) {
    return engine_refusal([&] { call(tensors, "diffusion_model", "square"); });
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(svd, SvdFixture)

BOOST_AUTO_TEST_CASE(the_velocities_equal_diffusers) {
  for (const std::string shape : {"square", "odd", "sv3d_u", "sv3d_p"}) {
    const std::int64_t label = shape == "sv3d_u" ? 256 : shape == "sv3d_p" ? 1280 : 768;
    const heddle::Results results = call(sv3d_unet(label), "diffusion_model", shape);
    const std::vector<float> all = expected.floats(shape + ".out");
    const auto row = std::ptrdiff_t(all.size() / kSvdSteps);
    for (int step = 0; step < kSvdSteps; ++step) {
      const double error =
          relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                         {all.begin() + row * step, all.begin() + row * (step + 1)});
      BOOST_TEST_MESSAGE(shape << ", step " << step << ": relative error " << error);
      BOOST_TEST(error < kSvdTolerance, shape << ", step " << step << ": " << error);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_decoder_equals_diffusers) {
  const double error = relative_error(
      call(svd_model("vae"), "vae.decoder", "vae").floats("model.outputs", "image.0"),
      expected.floats("vae.image"));
  BOOST_TEST_MESSAGE("relative error " << error);
  BOOST_TEST(error < 1e-5, error);
}

BOOST_AUTO_TEST_CASE(original_names_and_a_prefix_give_the_same_bytes) {
  for (const std::string role : {"diffusion_model", "vae.decoder"}) {
    const bool is_unet = role == "diffusion_model";
    const auto made = [&](const char* prefix) {
      std::vector<FileTensor> tensors = svd_model(is_unet ? "unet" : "vae");
      if (prefix != nullptr && is_unet) name_svd_as_original(tensors, prefix);
      if (prefix != nullptr && !is_unet) name_svd_vae_as_original(tensors, prefix);
      return call(tensors, role.c_str(), is_unet ? "odd" : "vae")
          .floats("model.outputs", is_unet ? "out.1" : "image.0");
    };
    const std::vector<float> diffusers = made(nullptr);
    BOOST_TEST(made("") == diffusers, role);
    BOOST_TEST(made(is_unet ? "model.diffusion_model." : "first_stage_model.") == diffusers, role);
  }
}

BOOST_AUTO_TEST_CASE(settings_say_what_readers_of_the_model_need) {
  const heddle::engine::Json settings = heddle::engine::parse_json(
      call(svd_model("unet"), "diffusion_model", "odd").text("model.settings"), "settings");
  BOOST_TEST(settings.at("family").as_string() == "svd");
  BOOST_TEST(settings.at("sampling").as_string() == "v_prediction");
  BOOST_TEST(settings.at("noise_table").as_string() == "continuous_edm");
  BOOST_TEST(settings.at("noise_lowest").as_double() == 0.002);
  BOOST_TEST(settings.at("noise_highest").as_double() == 700.0);
  BOOST_TEST(settings.at("size_numbers").as_int64() == 3);
  BOOST_TEST(settings.at("concat_channels").as_int64() == 4);
  BOOST_TEST(settings.at("concat_raw").as_bool());
  BOOST_TEST(settings.at("latent_scale").as_double() == 0.18215);
}

BOOST_AUTO_TEST_CASE(other_files_are_refused_by_what_they_are) {
  const auto has = [](const std::string& text, const std::string& words) {
    BOOST_TEST(text.find(words) != std::string::npos, "'" << words << "' is not in: " << text);
  };
  std::vector<FileTensor> damaged = svd_model("unet");
  std::erase_if(damaged, [](const FileTensor& tensor) {
    return tensor.name == "mid_block.resnets.1.time_mixer.mix_factor";
  });
  has(refusal(damaged), "mid_block.resnets.1.time_mixer.mix_factor");
  has(refusal(sv3d_unet(512)), "512 numbers about the video");
  // Modules of frames for another UNet are no Stable Video Diffusion.
  std::vector<FileTensor> modules = unet_model("sd1");
  modules.push_back(seeded_tensor("down_blocks.0.temporal_transformer.norm.weight", {32}));
  has(refusal(modules), "no model family of role 'diffusion_model' knows these");
}

BOOST_AUTO_TEST_SUITE_END()
