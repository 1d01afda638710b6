// LTXVAudioVAELoader, LTXVAudioVAEDecode and LTXVAudioVAEEncode over a tiny audio autoencoder and
// tiny vocoders of LTX 2 and 2.3 (../goldens/make_ltx2_audio_goldens.py).
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

namespace heddle::test {
namespace {

using engine::cat;

struct Ltx2Audio : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/ltx2_audio/expected.safetensors";
  TensorFile expected{golden};

  // As the publishers' files have them.
  static constexpr const char* kAutoencoder =
      R"("audio_vae": {"model": {"params": {"ddconfig": {"mel_bins": 16}}},
                       "preprocessing": {"stft": {"filter_length": 256, "hop_length": 40}}})";
  static constexpr const char* kStages =
      R"("vocoder": {"vocoder": {"upsample_rates": [5, 2], "resblock_dilation_sizes": [[1, 3], [1, 3]],
                                 "use_tanh_at_final": false},
                     "bwe": {"upsample_rates": [5, 3], "resblock_dilation_sizes": [[1, 3], [1, 3]],
                             "apply_final_activation": false, "hop_length": 5,
                             "input_sampling_rate": 16000, "output_sampling_rate": 48000}})";

  Ltx2Audio() {
    write("ltx2", "vocoder", cat("{", kAutoencoder, "}"));
    write("ltx23", "stages", cat("{", kAutoencoder, ", ", kStages, "}"));
  }
  // As a header of JSON holds it.
  static std::string escaped(const std::string& config) {
    std::string out;
    for (const char c : config) out += c == '"' ? "\\\"" : c == '\n' ? " " : std::string(1, c);
    return out;
  }
  void write(const std::string& name, const char* vocoder, const std::string& config) {
    std::vector<FileTensor> all;
    for (const char* part : {"vae", vocoder})
      for (FileTensor& tensor : seeded_model(part, false, "ltx2_audio")) {
        if (tensor.name.ends_with("std-of-means"))
          tensor = seeded_tensor(tensor.name, tensor.shape, "std.norm.weight");
        if (tensor.name.ends_with("mel_basis"))
          tensor = seeded_tensor(tensor.name, tensor.shape, "bands.norm.weight");
        if (tensor.name.ends_with(".filter"))
          tensor = {tensor.name, "F32", tensor.shape, bytes_of_floats(expected.floats("filter"))};
        tensor.name = cat(part == std::string("vae") ? "audio_vae." : "vocoder.", tensor.name);
        all.push_back(tensor);
      }
    const std::filesystem::path path = folder / "models" / "checkpoints" / (name + ".safetensors");
    std::filesystem::create_directories(path.parent_path());
    write_safetensors(path, all, {{"config", escaped(config)}});
  }
  // "out" of the node "latent".
  static std::string decoded(const std::string& latent, const std::string& file = "ltx2") {
    return cat(
        R"({"audio_vae": {"class_type": "LTXVAudioVAELoader", "inputs": {"ckpt_name": ")", file,
        R"(.safetensors"}}, )", latent,
        R"(, "out": {"class_type": "LTXVAudioVAEDecode", "inputs": {"samples": ["latent", 0], "audio_vae": ["audio_vae", 0]}}, )",
        kLook, "}");
  }
  std::string given(const char* node) const {
    return cat("\"", node,
               R"(": {"class_type": "test.latent", "inputs": {"name": "latent.z", "path": ")",
               golden.string(), R"("}})");
  }
  // A sound of this name, of its rate.
  std::string heard(const std::string& name) const {
    return cat(
        R"({"audio_vae": {"class_type": "LTXVAudioVAELoader", "inputs": {"ckpt_name": "ltx2.safetensors"}},
      "in": {"class_type": "test.sound", "inputs": {"name": ")",
        name, R"(", "rate": 16000, "path": ")", golden.string(),
        R"("}}, "out": {"class_type": "LTXVAudioVAEEncode", "inputs": {"audio": ["in", 0], "audio_vae": ["audio_vae", 0]}}, )",
        kLook, "}");
  }
  void compare(const std::vector<float>& made, const char* wanted) const {
    const double error = relative_error(made, expected.floats(wanted));
    BOOST_TEST_MESSAGE(wanted << ": relative error " << error << ", " << -20 * std::log10(error)
                              << " dB");
    BOOST_TEST(error < 1e-5, wanted << ": relative error " << error);
  }
  void compare(const std::string& latent) {
    compare(run_whole(decoded(latent), {"out.Audio"}).floats("out.Audio", "waveform"),
            "latent.waveform");
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

BOOST_AUTO_TEST_CASE(sound_of_two_stages_equals_diffusers) {
  const heddle::Results made = run_whole(decoded(given("latent"), "ltx23"), {"out.Audio"});
  compare(made.floats("out.Audio", "waveform"), "latent.wide");
  BOOST_TEST((made.shape("out.Audio", "waveform") == std::vector<std::int64_t>{2, 2, 390}));
}

BOOST_AUTO_TEST_CASE(other_placements_make_the_same_bytes) {
  const auto made = [&](EngineOptions options) {
    Engine engine(std::move(options));
    return engine.start(engine.parse(decoded(given("latent"), "ltx23")), {{}, {"out.Audio"}})
        .wait()
        .floats("out.Audio", "waveform");
  };
  const std::vector<float> alone = made(options_for({"cpu:0"}));
  BOOST_TEST(!alone.empty());
  BOOST_TEST(are_equal(alone, made(options_for({"fake:0"}))));
}

// By way of its spectrum, which has 13 frames: 4 of the latent.
BOOST_AUTO_TEST_CASE(latents_of_sound_equal_those_of_diffusers) {
  compare(run_whole(heard("voice.waveform"), {"out.Audio Latent"})
              .floats("out.Audio Latent", "samples"),
          "voice.mean");
}

BOOST_AUTO_TEST_CASE(a_sound_too_short_to_be_mirrored_is_refused) {
  const std::string text =
      engine_refusal([&] { run_whole(heard("short.waveform"), {"out.Audio Latent"}); });
  BOOST_TEST(text.find("more than 128") != std::string::npos, text);
}

// A file of a few kilobytes asks for no memory without bounds, and numbers do not wrap around.
BOOST_AUTO_TEST_CASE(numbers_of_metadata_are_bounded) {
  const auto refused = [&](const std::string& from, const std::string& to, const char* part,
                           bool is_vocoder) {
    std::string config = cat("{", kAutoencoder, ", ", kStages, "}");
    const std::size_t at = config.find(from);
    BOOST_TEST_REQUIRE((at != std::string::npos));
    config.replace(at, from.size(), to);
    write(is_vocoder ? "ltx23" : "ltx2", "stages", config);
    const std::string text = engine_refusal([&] {
      is_vocoder ? run_whole(decoded(given("latent"), "ltx23"), {"out.Audio"})
                 : run_whole(heard("voice.waveform"), {"out.Audio Latent"});
    });
    BOOST_TEST(text.find(part) != std::string::npos, to << ": " << text);
  };
  refused("256", "1099511627776", "filter_length", false);
  refused(R"("mel_bins": 16)", R"("mel_bins": 1125899906842624)", "mel_bins", false);
  refused("[[1, 3], [1, 3]]", "[[1, 4611686018427387904]]", "resblock_dilation_sizes", true);
  refused("[[1, 3], [1, 3]]", "[[]]", "resblock_dilation_sizes", true);
  refused(R"("input_sampling_rate": 16000, "output_sampling_rate": 48000)",
          R"("input_sampling_rate": 1, "output_sampling_rate": 4611686018427387904)",
          "the vocoder's upsampling", true);
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
