// MiniMax H3's audio autoencoder with weights that follow from their names, against what diffusers
// makes of the same ones (make_h3_sound_goldens.py).
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/h3_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

// Some hundred filters and sines in f32. The encoder of this small model enlarges what is rounded:
// diffusers in f32 is 1.7e-5 from itself in f64.
constexpr double kH3SoundTolerance = 2e-5, kH3SoundMeanTolerance = 1e-4;

struct H3SoundFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden = h3_sound_golden();
  TensorFile expected{golden};

  std::vector<float> made(bool decodes, const std::vector<FileTensor>& tensors,
                          const char* config = "") {
    const std::filesystem::path path = temporary / "sound.safetensors";
    write_safetensors(path, tensors);
    return probe
        .call({path, decodes ? "audio_vae.decoder" : "audio_vae.encoder", config, golden,
               decodes ? "latent." : "sound."})
        .floats("model.outputs", decodes ? "waveform.0" : "mean.0");
  }
  void compare(const std::vector<float>& got, const char* wanted,
               double tolerance = kH3SoundTolerance) const {
    const double error = relative_error(got, expected.floats(wanted));
    BOOST_TEST_MESSAGE(wanted << ": relative error " << error << ", " << -20 * std::log10(error)
                              << " dB");
    BOOST_TEST(error < tolerance, wanted << ": relative error " << error);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(h3_sound, H3SoundFixture)

BOOST_AUTO_TEST_CASE(sound_equals_that_of_diffusers) {
  compare(made(true, h3_sound_tensors()), "latent.sound");
}

BOOST_AUTO_TEST_CASE(latents_of_sound_equal_those_of_diffusers) {
  compare(made(false, h3_sound_tensors()), "sound.mean", kH3SoundMeanTolerance);
}

// As newer versions of PyTorch save the lengths and the rows of filters.
BOOST_AUTO_TEST_CASE(filters_by_their_other_names_give_the_same_bytes) {
  std::vector<FileTensor> tensors = h3_sound_tensors();
  for (FileTensor& tensor : tensors)
    for (const auto& [from, to] : {std::pair(".weight_g", ".parametrizations.weight.original0"),
                                   std::pair(".weight_v", ".parametrizations.weight.original1")})
      if (const std::string end = from; tensor.name.ends_with(end))
        tensor.name.replace(tensor.name.size() - end.size(), end.size(), to);
  for (const bool decodes : {false, true})
    BOOST_TEST((made(decodes, tensors) == made(decodes, h3_sound_tensors())));
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
  const auto says = [&](bool decodes, const char* config, const char* words) {
    const std::string text = engine_refusal([&] { made(decodes, h3_sound_tensors(), config); });
    BOOST_TEST(text.find(words) != std::string::npos, "'" << words << "' is not in: " << text);
  };
  says(false, R"({"num_attention_heads": 3})", "3 heads");
  says(true, R"({"sampling_rate": 0})", "sampling_rate");
  says(true, R"({"latents_std": [1]})", "32 channels, there are 1");
}

BOOST_AUTO_TEST_SUITE_END()
