// LTX 2's audio autoencoder and vocoder, and 2.3's vocoder, with weights that follow from their
// names, against what diffusers makes of the same ones (make_ltx2_audio_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

// Some twenty filters, or some hundred of the vocoder, in f32.
constexpr double kAudioTolerance = 1e-5;

struct AudioVaeFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/ltx2_audio/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(const char* model, bool by_diffusers, Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model(model, by_diffusers, "ltx2_audio");
    for (FileTensor& tensor : tensors) {
      if (tensor.name.ends_with("std-of-means") || tensor.name == "latents_std")
        tensor = seeded_tensor(tensor.name, tensor.shape, "std.norm.weight");
      if (tensor.name.ends_with("mel_basis"))
        tensor = seeded_tensor(tensor.name, tensor.shape, "bands.norm.weight");
      if (tensor.name.ends_with(".filter"))
        tensor = {tensor.name, "F32", tensor.shape, bytes_of_floats(expected.floats("filter"))};
    }
    change(tensors);
    const std::filesystem::path path = temporary / (std::string(model) + ".safetensors");
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file(const char* model, bool by_diffusers = false) const {
    return file(model, by_diffusers, [](std::vector<FileTensor>&) {});
  }
  std::vector<float> made(const std::filesystem::path& model, const char* role, const char* prefix,
                          const char* output, const char* config = "") {
    return probe.call({model, role, config, golden, prefix}).floats("model.outputs", output);
  }
  std::vector<float> spectrum(bool by_diffusers = false) {
    return made(file("vae", by_diffusers), "audio_vae.decoder", "latent.", "mel.0");
  }
  std::vector<float> latent(bool by_diffusers = false) {
    return made(file("vae", by_diffusers), "audio_vae.encoder", "sound.", "mean.0");
  }
  std::vector<float> sound(bool by_diffusers = false) {
    return made(file("vocoder", by_diffusers), "vocoder", "latent.", "waveform.0");
  }
  // Of two stages, 7 frames to 210 points.
  static constexpr const char* kStages =
      R"({"upsample_factors": [5, 2], "bwe_upsample_factors": [5, 3], "hop_length": 5,
          "resnet_dilations": [[1, 3], [1, 3]], "bwe_resnet_dilations": [[1, 3], [1, 3]]})";
  std::vector<float> wide_sound(bool by_diffusers = false) {
    return made(file("stages", by_diffusers), "vocoder", "stages.", "waveform.0", kStages);
  }
  void compare(const std::vector<float>& got, const char* wanted) const {
    const double error = relative_error(got, expected.floats(wanted));
    BOOST_TEST_MESSAGE(wanted << ": relative error " << error << ", " << -20 * std::log10(error)
                              << " dB");
    BOOST_TEST(error < kAudioTolerance, wanted << ": relative error " << error);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(audio_vae, AudioVaeFixture)

BOOST_AUTO_TEST_CASE(decoding_equals_diffusers) { compare(spectrum(), "latent.mel"); }

BOOST_AUTO_TEST_CASE(encoding_equals_diffusers) { compare(latent(), "sound.mean"); }

BOOST_AUTO_TEST_CASE(sound_equals_diffusers) { compare(sound(), "latent.waveform"); }

BOOST_AUTO_TEST_CASE(sound_of_two_stages_equals_diffusers) {
  compare(wide_sound(), "stages.waveform");
}

BOOST_AUTO_TEST_CASE(diffusers_names_give_the_same_bytes) {
  BOOST_TEST((spectrum() == spectrum(true)));
  BOOST_TEST((latent() == latent(true)));
  BOOST_TEST((sound() == sound(true)));
  BOOST_TEST((wide_sound() == wide_sound(true)));
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
  const auto says = [&](const std::filesystem::path& model, const char* role, const char* config,
                        const char* words) {
    const std::string text = engine_refusal([&] { made(model, role, "latent.", "none", config); });
    BOOST_TEST(text.find(words) != std::string::npos, "'" << words << "' is not in: " << text);
  };
  const auto with = [&](const char* model, const char* name) {
    return file(model, false, [name](std::vector<FileTensor>& tensors) {
      tensors.push_back(seeded_tensor(name, {1}));
    });
  };
  says(file("vocoder"), "vocoder", R"({"upsample_factors": [6, 5, 2, 2]})", "5 upsamplings");
  says(file("vocoder"), "vocoder", R"({"upsample_factors": [5, 6, 2, 2, 2]})",
       "16 taps for an upsampling by 5");
  says(file("vocoder"), "vocoder", R"({"output_sampling_rate": 0})", "output_sampling_rate");
  says(with("vocoder", "resblocks.0.acts1.0.act.alpha"), "vocoder", "", "no second stage");
  const auto stages = [](const std::string& numbers) {
    return R"({"resnet_dilations": [[1, 3]], "bwe_resnet_dilations": [[1, 3]], "upsample_factors": [5, 2], )" +
           numbers + "}";
  };
  says(file("stages"), "vocoder", stages(R"("bwe_upsample_factors": [5], "hop_length": 5)").c_str(),
       "'bwe_generator.' has 2 upsamplings");
  says(file("stages"), "vocoder", stages(R"("bwe_upsample_factors": [5, 3])").c_str(),
       "no whole number of hop_length 80");
  says(file("stages"), "vocoder",
       stages(R"("bwe_upsample_factors": [5, 3], "hop_length": 10)").c_str(),
       "makes 15 points of one frame");
  says(file("stages"), "vocoder", R"({"output_sampling_rate": 44100})", "a multiple of");
  says(file("vae"), "audio_vae.decoder", R"({"causality_axis": "width"})", "'width'");
  says(with("vae", "decoder.mid.attn_1.q.weight"), "audio_vae.decoder", "", "attention");
  says(with("vae", "decoder.mid.block_1.norm1.weight"), "audio_vae.decoder", "", "norms of groups");
}

BOOST_AUTO_TEST_SUITE_END()
