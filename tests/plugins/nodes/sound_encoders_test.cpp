// AudioEncoderLoader and AudioEncoderEncode over tiny encoders of sound
// (../goldens/make_sound_encoder_goldens.py).
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

namespace heddle::test {
namespace {

using engine::cat;

// Every so many numbers of the states are in the golden.
constexpr std::size_t kStateStep = 13;

struct SoundEncoderNodes : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/sound_encoders/expected.safetensors";
  TensorFile expected{golden};

  SoundEncoderNodes() {
    for (const char* model : {"stable", "plain", "whisper"})
      add(cat("audio_encoders/", model), seeded_model(model, false, "sound_encoders"));
  }
  std::string heard(const std::string& model, const std::string& sound) const {
    return cat(
        R"({"encoder": {"class_type": "AudioEncoderLoader", "inputs": {"audio_encoder_name": ")",
        model, R"(.safetensors"}}, "sound": )", sound,
        R"(, "out": {"class_type": "AudioEncoderEncode", "inputs": {"audio_encoder": ["encoder", 0],
           "audio": ["sound", 0]}}, )",
        kLook, "}");
  }
  std::string voice(const char* rate) const {
    return cat(R"({"class_type": "test.sound", "inputs": {"name": "voice.waveform", "rate": )",
               rate, R"(, "path": ")", golden.string(), R"("}})");
  }
  static std::string silence(const char* seconds) {
    return cat(R"({"class_type": "EmptyAudio", "inputs": {"duration": )", seconds,
               R"(, "sample_rate": 8000, "channels": 1}})");
  }
  heddle::Results run(const std::string& flow) {
    return run_whole(flow, {"out.AUDIO_ENCODER_OUTPUT"});
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(sound_encoder_nodes, SoundEncoderNodes)

BOOST_AUTO_TEST_CASE(what_is_heard_of_a_sound_equals_transformers) {
  for (const std::string model : {"stable", "plain", "whisper"}) {
    const heddle::Results made = run(heard(model, voice("16000")));
    const std::vector<float> all = made.floats("out.AUDIO_ENCODER_OUTPUT",
                                               "encoded_audio_all_layers"),
                             last = made.floats("out.AUDIO_ENCODER_OUTPUT", "encoded_audio");
    std::vector<float> some;
    for (std::size_t i = 0; i < all.size(); i += kStateStep) some.push_back(all[i]);
    const double error = relative_error(some, expected.floats("voice." + model));
    BOOST_TEST_MESSAGE(model << ": relative error " << error);
    BOOST_TEST(error < 1e-5, model << ": relative error " << error);
    BOOST_TEST_REQUIRE(last.size() < all.size());
    BOOST_TEST(std::equal(last.begin(), last.end(), all.end() - std::ptrdiff_t(last.size())),
               model);
  }
}

// 1600 points at 8 kHz are 3200 at 16 kHz, of which a filter of 30 is read every 20.
BOOST_AUTO_TEST_CASE(sounds_are_heard_at_16_kilohertz) {
  const heddle::Results made = run(heard("stable", voice("8000")));
  BOOST_TEST((made.shape("out.AUDIO_ENCODER_OUTPUT", "encoded_audio") ==
              std::vector<std::int64_t>{2, 159, 128}));
  BOOST_TEST((made.shape("out.AUDIO_ENCODER_OUTPUT", "encoded_audio_all_layers") ==
              std::vector<std::int64_t>{4, 2, 159, 128}));
}

BOOST_AUTO_TEST_CASE(a_sound_too_short_to_be_heard_is_refused) {
  const std::string text = engine_refusal([&] { run(heard("plain", silence("0.001"))); });
  for (const char* word : {"audio", "16 points", "no less than 30"})
    BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
}

BOOST_AUTO_TEST_CASE(other_placements_hear_the_same_bytes) {
  const auto made = [&](EngineOptions options) {
    Engine engine(std::move(options));
    return engine
        .start(engine.parse(heard("plain", voice("16000"))), {{}, {"out.AUDIO_ENCODER_OUTPUT"}})
        .wait()
        .floats("out.AUDIO_ENCODER_OUTPUT", "encoded_audio");
  };
  const std::vector<float> alone = made(options_for({"cpu:0"}));
  BOOST_TEST(!alone.empty());
  BOOST_TEST(are_equal(alone, made(options_for({"fake:0"}))));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
