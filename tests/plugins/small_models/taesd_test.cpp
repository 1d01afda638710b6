// TAESD with weights that follow from their names, through the engine and as VAELoader makes it of
// two files, against what diffusers makes of the same ones (../goldens/make_taesd_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/text.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/pytorch_writer.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using heddle::Engine;
using heddle::EngineOptions;
using heddle::engine::cat;
using namespace heddle::test;

namespace {

constexpr double kTaesdTolerance = 2e-6;
// Of FLUX.1's latents.
constexpr const char* kTaesdConfig = R"({"scaling_factor": 0.3611, "shift_factor": 0.1159})";

struct TaesdFixture {
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/taesd/expected.safetensors";
  TensorFile expected{golden};

  std::filesystem::path file(const char* model, const std::string& prefix) const {
    std::vector<FileTensor> tensors = seeded_model(model, false, "taesd");
    for (FileTensor& tensor : tensors) tensor.name = prefix + tensor.name;
    const std::filesystem::path path = temporary / (std::string(model) + ".safetensors");
    write_safetensors(path, tensors);
    return path;
  }
  void compare(const std::vector<float>& got, const char* name) const {
    const double error = relative_error(got, expected.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < kTaesdTolerance, name << ": relative error " << error);
  }
  EngineOptions options() const {
    EngineOptions options = engine_options();
    options.compute[test_device_kind()] = "f32";
    options.model_dirs = {temporary / "models"};
    options.output_dir = temporary / "output";
    return options;
  }
  static std::string flow(const std::string& name) {
    return cat(R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": ")", name, R"("}},
      "grey": {"class_type": "EmptyImage", "inputs": {"width": 24, "height": 16, "batch_size": 1, "color": 8421504}},
      "latent": {"class_type": "VAEEncode", "inputs": {"pixels": ["grey", 0], "vae": ["vae", 0]}},
      "back": {"class_type": "VAEDecode", "inputs": {"samples": ["latent", 0], "vae": ["vae", 0]}},
      "end": {"class_type": "Discard", "inputs": {"value": ["back", 0]}}})");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(taesd, TaesdFixture)

BOOST_AUTO_TEST_CASE(latents_are_decoded_and_encoded_as_diffusers_does) {
  ModelProbe probe;
  for (const std::string prefix : {"", "taesd_"}) {
    const auto decoded = probe.call({file("decoder", prefix.empty() ? "" : prefix + "decoder."),
                                     "vae.decoder", kTaesdConfig, golden, "decoder."});
    compare(decoded.floats("model.outputs", "image.0"), "decoder.image");
    const auto encoded = probe.call({file("encoder", prefix.empty() ? "" : prefix + "encoder."),
                                     "vae.encoder", kTaesdConfig, golden, "encoder."});
    compare(encoded.floats("model.outputs", "mean.0"), "encoder.mean");
  }
  const auto both =
      probe.call({file("diffusers", ""), "vae.decoder", kTaesdConfig, golden, "both."});
  compare(both.floats("model.outputs", "image.0"), "both.image");
}

BOOST_AUTO_TEST_CASE(a_number_far_behind_the_others_is_refused) {
  ModelProbe probe;
  for (const char* stray : {"2000000000.weight", "2147483647.weight"}) {
    std::vector<FileTensor> tensors = seeded_model("decoder", false, "taesd");
    std::erase_if(tensors, [](const FileTensor& t) { return t.name.starts_with("11."); });
    tensors.push_back({stray, "F32", {0}});
    const std::filesystem::path path = temporary / "stray.safetensors";
    write_safetensors(path, tensors);
    const std::string why = engine_refusal([&] {
      probe.call({path, "vae.decoder", kTaesdConfig, golden, "decoder."});
    });
    BOOST_TEST(why.find("stray.safetensors: tensor '9999.weight'") != std::string::npos, why);
  }
}

BOOST_AUTO_TEST_CASE(two_files_make_one_autoencoder) {
  const std::filesystem::path folder = temporary / "models/vae_approx";
  std::filesystem::create_directories(folder);
  Engine lacking(options());
  const std::string why = engine_refusal([&] { lacking.plan(lacking.parse(flow("taef1"))); });
  BOOST_TEST(why.find("'taef1'") != std::string::npos, why);
  write_pytorch(folder / "taef1_decoder.pth", seeded_model("decoder", false, "taesd"), "params");
  std::filesystem::copy_file(file("encoder", ""), folder / "taef1_encoder.safetensors");
  Engine engine(options());
  const heddle::Results results =
      engine.start(engine.parse(flow("taef1")), {{}, {"back.IMAGE", "latent.LATENT"}}).wait();
  // A latent of a quarter of the sides here, of 16 channels.
  BOOST_TEST(results.floats("latent.LATENT", "samples").size() == std::size_t(16 * 4 * 6));
  BOOST_TEST(results.floats("back.IMAGE").size() == std::size_t(16 * 24 * 3));
}

BOOST_AUTO_TEST_SUITE_END()
