// FLUX.2's autoencoder with weights that follow from their names, through the engine, against what
// diffusers makes of the same ones (make_flux2_goldens.py). Its decoder is smaller than its
// encoder, and its latents are packed and normalised.
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kFlux2VaeTolerance = 1e-5;

struct Flux2VaeFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/flux2/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model("vae", false, "flux2");
    change(tensors);
    const std::filesystem::path path = temporary / "vae.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file() const {
    return file([](std::vector<FileTensor>&) {});
  }
  heddle::Results decode(const std::filesystem::path& model) {
    return probe.call({model, "vae.decoder", "", golden, "vae."});
  }
  heddle::Results encode(const std::filesystem::path& model) {
    return probe.call({model, "vae.encoder", "", golden, "vae_encoder."});
  }
  void compare(const heddle::Results& results, const char* output, const char* name) const {
    const double error = relative_error(results.floats("model.outputs", std::string(output) + ".0"),
                                        expected.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < kFlux2VaeTolerance, name << ": relative error " << error);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(flux2_vae, Flux2VaeFixture)

BOOST_AUTO_TEST_CASE(packed_latents_are_decoded_and_encoded_as_diffusers_does) {
  compare(decode(file()), "image", "vae.image");
  const heddle::Results encoded = encode(file());
  compare(encoded, "mean", "vae_encoder.mean");
  compare(encoded, "logvar", "vae_encoder.logvar");
}

BOOST_AUTO_TEST_CASE(convolutions_of_latents_may_stand_with_their_side) {
  const auto inside = file([](std::vector<FileTensor>& tensors) {
    for (FileTensor& tensor : tensors)
      if (tensor.name.starts_with("post_quant_conv."))
        tensor.name = "decoder." + tensor.name;
      else if (tensor.name.starts_with("quant_conv."))
        tensor.name = "encoder." + tensor.name;
  });
  compare(decode(inside), "image", "vae.image");
  compare(encode(inside), "mean", "vae_encoder.mean");
}

BOOST_AUTO_TEST_CASE(settings_are_those_of_cells_of_sixteen_pixels) {
  const heddle::engine::Json settings =
      heddle::engine::parse_json(decode(file()).text("model.settings"), "settings");
  BOOST_TEST(settings.find("latent_channels")->as_int64() == 128);
  BOOST_TEST(settings.find("downscale")->as_int64() == 16);
  BOOST_TEST(settings.find("scaling_factor")->as_double() == 1.0);
  BOOST_TEST(settings.find("shift_factor")->as_double() == 0.0);
}

BOOST_AUTO_TEST_CASE(statistics_of_another_size_are_refused) {
  const auto cut = file([](std::vector<FileTensor>& tensors) {
    for (FileTensor& tensor : tensors)
      if (tensor.name == "bn.running_var") {
        tensor.shape = {64};
        tensor.bytes.resize(4 * 64);
      }
  });
  const std::string text = engine_refusal([&] { decode(cut); });
  for (const char* word : {"vae.safetensors", "'bn.running_var'", "unpack", "(64)", "(128)"})
    BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
}

BOOST_AUTO_TEST_SUITE_END()
