// The causal autoencoders of Wan 2.1, Qwen-Image and Qwen-Image 2.1 on single pictures, with
// weights that follow from their names, against what diffusers makes of the same ones
// (make_workflow_goldens.py, make_qwen21_picture_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kWanVaeTolerance = 5e-6;

struct WanVaeFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/workflows/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(bool by_diffusers, Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model("qwen_image.vae", by_diffusers);
    change(tensors);
    const std::filesystem::path path = temporary / "vae.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file(bool by_diffusers = false) const {
    return file(by_diffusers, [](std::vector<FileTensor>&) {});
  }
  heddle::Results decode(const std::filesystem::path& model) {
    return probe.call({model, "vae.decoder", "", golden, "qwen_vae."});
  }
  heddle::Results encode(const std::filesystem::path& model) {
    return probe.call({model, "vae.encoder", "", golden, "qwen_vae_encoder."});
  }
  void compare(const heddle::Results& results, const char* output, const char* name) const {
    const double error = relative_error(results.floats("model.outputs", std::string(output) + ".0"),
                                        expected.floats(name));
    BOOST_TEST(error < kWanVaeTolerance, name << ": relative error " << error);
  }
};

// Of Qwen-Image 2.1: the same by its own files.
struct Qwen21VaeFixture : WanVaeFixture {
  const std::filesystem::path pictures =
      tests_folder() / "plugins/goldens/qwen21_pictures/expected.safetensors";
  TensorFile wanted{pictures};

  template <class Change>
  std::filesystem::path file_of(bool by_diffusers, Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model("vae", by_diffusers, "qwen21_pictures");
    for (FileTensor& tensor : tensors)
      if (by_diffusers && tensor.shape.size() == 5) tensor.shape.erase(tensor.shape.begin() + 2);
    change(tensors);
    const std::filesystem::path path = temporary / "qwen21_vae.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  void hold(const heddle::Results& results, const char* output, const char* name) const {
    const double error = relative_error(results.floats("model.outputs", std::string(output) + ".0"),
                                        wanted.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < kWanVaeTolerance, name << ": relative error " << error);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(autoencoder_wan, WanVaeFixture)

BOOST_AUTO_TEST_CASE(decodes_and_encodes_single_pictures_under_both_names) {
  for (const bool by_diffusers : {false, true}) {
    const std::filesystem::path model = file(by_diffusers);
    compare(decode(model), "image", "qwen_vae.image");
    const heddle::Results encoded = encode(model);
    compare(encoded, "mean", "qwen_vae_encoder.mean");
    compare(encoded, "logvar", "qwen_vae_encoder.logvar");
  }
}

BOOST_AUTO_TEST_CASE(settings_have_a_mean_and_a_deviation_for_each_channel) {
  const heddle::engine::Json settings =
      heddle::engine::parse_json(decode(file()).text("model.settings"), "settings");
  BOOST_TEST(settings.find("latent_means")->size() == 16u);
  BOOST_TEST(settings.find("latent_deviations")->as_array().back().as_double() == 1.9160);
  BOOST_TEST(settings.find("downscale")->as_int64() == 8);
}

BOOST_AUTO_TEST_CASE(what_is_missing_or_of_another_autoencoder_is_said) {
  const auto says = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  const auto lacking = file(false, [](std::vector<FileTensor>& tensors) {
    std::erase_if(tensors, [](const FileTensor& tensor) {
      return tensor.name == "decoder.upsamples.1.residual.6.weight";
    });
  });
  says(engine_refusal([&] { decode(lacking); }),
       {"vae.safetensors", "'decoder.upsamples.1.residual.6.weight'", "up.1", "missing"});
  const auto odd = file(false, [](std::vector<FileTensor>& tensors) {
    for (FileTensor& tensor : tensors)
      if (tensor.name == "decoder.head.2.weight") {
        tensor.shape[0] = 5;
        tensor.bytes.resize(bytes_of(tensor));
      }
  });
  says(engine_refusal([&] { decode(odd); }), {"vae.safetensors", "5 channels", "Layered"});
}

BOOST_FIXTURE_TEST_CASE(qwen21_decodes_and_encodes_pictures_with_alpha_under_both_names,
                        Qwen21VaeFixture) {
  for (const bool by_diffusers : {false, true}) {
    const auto model = file_of(by_diffusers, [](std::vector<FileTensor>&) {});
    const heddle::Results decoded = probe.call({model, "vae.decoder", "", pictures, "vae."});
    hold(decoded, "image", "vae.image");
    const heddle::Results encoded =
        probe.call({model, "vae.encoder", "", pictures, "vae_encoder."});
    hold(encoded, "mean", "vae_encoder.mean");
    hold(encoded, "logvar", "vae_encoder.logvar");
    if (by_diffusers) continue;
    const heddle::engine::Json settings =
        heddle::engine::parse_json(decoded.text("model.settings"), "settings");
    BOOST_TEST(settings.find("downscale")->as_int64() == 16);
    BOOST_TEST(settings.find("pixel_channels")->as_int64() == 4);
    BOOST_TEST(settings.find("latent_means")->as_array().front().as_double() == 0.5126);
    BOOST_TEST(settings.find("latent_deviations")->as_array().back().as_double() == 3.8161);
  }
}

BOOST_FIXTURE_TEST_CASE(qwen21_with_another_width_or_without_a_tensor_is_refused,
                        Qwen21VaeFixture) {
  const auto says = [&](const char* name, bool cuts, std::initializer_list<const char*> words) {
    const auto damaged = file_of(false, [&](std::vector<FileTensor>& tensors) {
      for (FileTensor& tensor : tensors)
        if (tensor.name == name) {
          tensor.shape[0] = cuts ? tensor.shape[0] - 1 : 8;
          tensor.bytes.resize(bytes_of(tensor));
        }
    });
    const std::string text = engine_refusal([&] {
      probe.call({damaged, "vae.decoder", "", pictures, "vae."});
    });
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  says("decoder.head.2.weight", false, {"qwen21_vae.safetensors", "8 channels", "Wan 2.2"});
  says("decoder.upsamples.2.upsamples.0.residual.2.weight", true, {"qwen21_vae.safetensors", "11"});
}

BOOST_AUTO_TEST_SUITE_END()
