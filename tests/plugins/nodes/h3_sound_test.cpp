// VAEDecodeAudio, LTXVAudioVAEDecode and VAEEncodeAudio over a tiny audio autoencoder of MiniMax H3
// whose weights follow from their names, against what diffusers makes of the same ones
// (../goldens/make_h3_sound_goldens.py).
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"
#include "tests/support/h3_files.h"

namespace heddle::test {
namespace {

using engine::cat;

struct H3SoundNodes : PlacedFixture {
  const std::filesystem::path golden = h3_sound_golden();
  TensorFile expected{golden};

  H3SoundNodes() { add("vae/sound", h3_sound_tensors()); }
  static std::string flow(const std::string& in, const std::string& out) {
    return cat(
        R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": "sound.safetensors"}}, "in": )",
        in, R"(, "out": )", out, ", ", kLook, "}");
  }
  std::string latent() const {
    return cat(R"({"class_type": "test.latent", "inputs": {"name": "units.z", "path": ")",
               golden.string(), R"("}})");
  }
  std::string sound(const std::string& name, int rate) const {
    return cat(R"({"class_type": "test.sound", "inputs": {"name": ")", name, R"(", "rate": )", rate,
               R"(, "path": ")", golden.string(), R"("}})");
  }
  static std::string encoded(const std::string& in) {
    return flow(
        in,
        R"({"class_type": "VAEEncodeAudio", "inputs": {"audio": ["in", 0], "vae": ["vae", 0]}})");
  }
  void compare(const std::vector<float>& made, const char* wanted, double tolerance) {
    const double error = relative_error(made, expected.floats(wanted));
    BOOST_TEST_MESSAGE(wanted << ": relative error " << error << ", " << -20 * std::log10(error)
                              << " dB");
    BOOST_TEST(error < tolerance, wanted << ": relative error " << error);
  }
};

constexpr const char* kAsItIs =
    R"({"class_type": "LTXVAudioVAEDecode", "inputs": {"samples": ["in", 0], "audio_vae": ["vae", 0]}})";
constexpr const char* kQuieter =
    R"({"class_type": "VAEDecodeAudio", "inputs": {"samples": ["in", 0], "vae": ["vae", 0]}})";

}  // namespace

BOOST_FIXTURE_TEST_SUITE(h3_sound_nodes, H3SoundNodes)

BOOST_AUTO_TEST_CASE(sound_of_a_latent_equals_that_of_diffusers) {
  const heddle::Results as_it_is = run_whole(flow(latent(), kAsItIs), {"out.Audio"});
  compare(as_it_is.floats("out.Audio", "waveform"), "latent.sound", 2e-5);
  BOOST_TEST((as_it_is.shape("out.Audio", "waveform") == std::vector<std::int64_t>{1, 2, 2400}));
  compare(run_whole(flow(latent(), kQuieter), {"out.AUDIO"}).floats("out.AUDIO", "waveform"),
          "loud.sound", 2e-5);
}

BOOST_AUTO_TEST_CASE(latents_of_sound_equal_those_of_diffusers) {
  const auto made = [&](const std::string& name, int rate) {
    return run_whole(encoded(sound(name, rate)), {"out.LATENT"}).floats("out.LATENT", "samples");
  };
  // The encoder enlarges what is rounded (../families/h3_sound_test.cpp).
  compare(made("sound.waveform", 32000), "units.mean", 1e-4);
  compare(made("fast.waveform", 44100), "fast.mean", 1e-4);
}

BOOST_AUTO_TEST_CASE(other_placements_make_the_same_bytes) {
  const auto made = [&](EngineOptions options) {
    Engine engine(std::move(options));
    return engine.start(engine.parse(flow(latent(), kAsItIs)), {{}, {"out.Audio"}})
        .wait()
        .floats("out.Audio", "waveform");
  };
  const std::vector<float> alone = made(options_for({"cpu:0"}));
  BOOST_TEST(!alone.empty());
  BOOST_TEST(are_equal(alone, made(options_for({"fake:0"}))), "fake");
  BOOST_TEST(are_equal(alone, made(options_for({"fake:0"}, 7 << 20))), "little memory");
}

BOOST_AUTO_TEST_CASE(what_is_no_sound_is_refused) {
  const auto says = [&](const std::string& flow, const char* output, const char* words) {
    const std::string text = engine_refusal([&] { run_whole(flow, {output}); });
    BOOST_TEST(text.find(words) != std::string::npos, "'" << words << "' is not in: " << text);
  };
  says(
      flow(
          R"({"class_type": "EmptySD3LatentImage", "inputs": {"width": 64, "height": 64, "batch_size": 1}})",
          kQuieter),
      "out.AUDIO", "takes 32");
  add("vae/pictures", h3_video_tensors(false));
  std::string other = flow(latent(), kQuieter);
  other.replace(other.find("sound.safetensors"), 5, "pictures");
  says(other, "out.AUDIO", "no autoencoder of sound");
  // A file of sound is no file of pictures.
  says(
      flow(
          R"({"class_type": "EmptySD3LatentImage", "inputs": {"width": 64, "height": 64, "batch_size": 1}})",
          R"({"class_type": "VAEDecode", "inputs": {"samples": ["in", 0], "vae": ["vae", 0]}})"),
      "out.IMAGE", "");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
