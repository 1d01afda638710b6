// Qwen-Image-Layered on tiny models whose weights follow from their names, against what diffusers
// makes of the same ones (make_qwen_layered_goldens.py): the transformer, which draws several
// pictures at once, and the autoencoder, whose pictures have alpha.
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

// The sines of a high timestep are short of digits (random_models_test.cpp), those of the last
// step, of up to 125 radians, are not. A wrong term gives 1e-2 or more.
constexpr double kLayeredTolerance = 5e-6, kLayeredTimestepTolerance = 5e-5;
constexpr int kLayeredSteps = 3;

struct LayeredFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/qwen_layered/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(const char* model, bool by_diffusers, Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model(model, by_diffusers, "qwen_layered");
    change(tensors);
    const std::filesystem::path path = temporary / (std::string(model) + ".safetensors");
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path transformer() const {
    return file("transformer", false, [](std::vector<FileTensor>&) {});
  }
  heddle::Results call(const std::filesystem::path& model, const std::string& name) {
    return probe.call({model, "diffusion_model", "", golden, name + "."});
  }
  static void compare(const std::vector<float>& got, const std::vector<float>& wanted,
                      const std::string& name, double tolerance = kLayeredTolerance) {
    const double error = relative_error(got, wanted);
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < tolerance, name << ": relative error " << error);
  }
  void compare_steps(const heddle::Results& results, const std::string& name) const {
    const std::vector<float> all = expected.floats(name + ".out");
    const auto row = std::ptrdiff_t(all.size() / kLayeredSteps);
    for (int step = 0; step < kLayeredSteps; ++step)
      compare(results.floats("model.outputs", "out." + std::to_string(step)),
              {all.begin() + row * step, all.begin() + row * (step + 1)},
              name + ", step " + std::to_string(step),
              step == kLayeredSteps - 1 ? kLayeredTolerance : kLayeredTimestepTolerance);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(qwen_layered, LayeredFixture)

BOOST_AUTO_TEST_CASE(layers_of_a_picture_that_is_shown_have_the_velocity_of_diffusers) {
  const std::filesystem::path model = transformer();
  for (const char* name : {"tall", "wide", "many", "odd"}) compare_steps(call(model, name), name);
}

BOOST_AUTO_TEST_CASE(layers_of_a_text_alone_have_the_velocity_of_diffusers) {
  const std::filesystem::path model = transformer();
  for (const char* name : {"alone", "one"}) compare_steps(call(model, name), name);
}

BOOST_AUTO_TEST_CASE(a_prefix_changes_nothing_and_settings_say_what_samplers_need) {
  const auto prefixed = file("transformer", false, [](std::vector<FileTensor>& tensors) {
    for (FileTensor& tensor : tensors) tensor.name = "model.diffusion_model." + tensor.name;
  });
  const heddle::Results results = call(prefixed, "wide");
  compare_steps(results, "wide");
  const heddle::engine::Json settings =
      heddle::engine::parse_json(results.text("model.settings"), "settings");
  const auto written = [&](const char* key) {
    return heddle::engine::write_json(*settings.find(key));
  };
  BOOST_TEST(written("family") == "\"qwen-image\"");
  BOOST_TEST(written("latent_channels") == "16");
  BOOST_TEST(written("latent_frames") == "true");
  BOOST_TEST(written("reference_method") == "\"negative_index\"");
  // ControlNets have hints of one picture.
  BOOST_TEST(settings.find("control_width") == nullptr);
  BOOST_TEST(settings.find("latent_means")->size() == 16u);
}

BOOST_AUTO_TEST_CASE(a_table_of_another_shape_is_refused) {
  const auto narrow = file("transformer", false, [](std::vector<FileTensor>& tensors) {
    for (FileTensor& tensor : tensors)
      if (tensor.name == "time_text_embed.addition_t_embedding.weight") {
        tensor.shape = {1, 48};
        tensor.bytes.resize(bytes_of(tensor));
      }
  });
  const std::string refusal = engine_refusal([&] { call(narrow, "wide"); });
  for (const char* word : {"transformer.safetensors", "addition_t_embedding", "(1, 48)", "(2, 48)"})
    BOOST_TEST(refusal.find(word) != std::string::npos, "'" << word << "' is not in: " << refusal);
}

BOOST_AUTO_TEST_CASE(the_autoencoder_takes_and_gives_pictures_with_alpha_under_both_names) {
  for (const bool by_diffusers : {false, true}) {
    const auto model = file("vae", by_diffusers, [](std::vector<FileTensor>&) {});
    const heddle::Results decoded = probe.call({model, "vae.decoder", "", golden, "vae."});
    compare(decoded.floats("model.outputs", "image.0"), expected.floats("vae.image"), "image");
    const heddle::Results encoded = probe.call({model, "vae.encoder", "", golden, "vae_encoder."});
    for (const char* output : {"mean", "logvar"})
      compare(encoded.floats("model.outputs", std::string(output) + ".0"),
              expected.floats(std::string("vae_encoder.") + output), output);
    const heddle::engine::Json settings =
        heddle::engine::parse_json(decoded.text("model.settings"), "settings");
    BOOST_TEST(settings.find("pixel_channels")->as_int64() == 4);
    BOOST_TEST(settings.find("downscale")->as_int64() == 8);
    BOOST_TEST(settings.find("latent_means")->size() == 16u);
  }
}

BOOST_AUTO_TEST_SUITE_END()
