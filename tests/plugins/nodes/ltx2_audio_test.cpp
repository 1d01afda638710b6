// LTXVAudioVAELoader and LTXVAudioVAEDecode over a tiny audio autoencoder and vocoder of LTX 2
// (../goldens/make_ltx2_audio_goldens.py).
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

namespace heddle::test {
namespace {

using engine::cat;

struct Ltx2Audio : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/ltx2_audio/expected.safetensors";
  TensorFile expected{golden};

  Ltx2Audio() {
    std::vector<FileTensor> all;
    for (const char* part : {"vae", "vocoder"})
      for (FileTensor& tensor : seeded_model(part, false, "ltx2_audio")) {
        if (tensor.name.ends_with("std-of-means"))
          tensor = seeded_tensor(tensor.name, tensor.shape, "std.norm.weight");
        tensor.name = cat(part == std::string("vae") ? "audio_vae." : "vocoder.", tensor.name);
        all.push_back(tensor);
      }
    add("checkpoints/ltx2", all);
  }
  // "out" of the node "latent".
  static std::string decoded(const std::string& latent) {
    return cat(
        R"({"audio_vae": {"class_type": "LTXVAudioVAELoader", "inputs": {"ckpt_name": "ltx2.safetensors"}}, )",
        latent,
        R"(, "out": {"class_type": "LTXVAudioVAEDecode", "inputs": {"samples": ["latent", 0], "audio_vae": ["audio_vae", 0]}}, )",
        kLook, "}");
  }
  std::string given(const char* node) const {
    return cat("\"", node,
               R"(": {"class_type": "test.latent", "inputs": {"name": "latent.z", "path": ")",
               golden.string(), R"("}})");
  }
  void compare(const std::string& latent) {
    const std::vector<float> sound =
        run_whole(decoded(latent), {"out.Audio"}).floats("out.Audio", "waveform");
    const double error = relative_error(sound, expected.floats("latent.waveform"));
    BOOST_TEST_MESSAGE("relative error " << error << ", " << -20 * std::log10(error) << " dB");
    BOOST_TEST(error < 1e-5, "relative error " << error);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(ltx2_audio, Ltx2Audio)

BOOST_AUTO_TEST_CASE(sound_of_a_latent_equals_diffusers) { compare(given("latent")); }

BOOST_AUTO_TEST_CASE(sound_beside_pictures_is_decoded) {
  compare(cat(
      given("sound"),
      R"(, "empty": {"class_type": "EmptyLTXVLatentVideo", "inputs": {"width": 64, "height": 64, "length": 9, "batch_size": 1}},
      "latent": {"class_type": "LTXVConcatAVLatent", "inputs": {"video_latent": ["empty", 0], "audio_latent": ["sound", 0]}})"));
}

BOOST_AUTO_TEST_CASE(what_is_no_sound_is_refused) {
  const std::string text = engine_refusal([&] {
    run_whole(
        decoded(
            R"("latent": {"class_type": "EmptyLTXVLatentVideo", "inputs": {"width": 64, "height": 64, "length": 9, "batch_size": 1}})"),
        {"out.Audio"});
  });
  BOOST_TEST(text.find("Link a latent of sound") != std::string::npos, text);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
