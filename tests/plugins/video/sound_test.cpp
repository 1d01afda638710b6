// Nodes of sound against PyTorch (make_sound_goldens.py) and against what the program ffmpeg
// decodes of other encoders' files (make_goldens.py), and what the nodes save.
#include "tests/plugins/video/video_fixture.h"

namespace heddle::video {
namespace {

using namespace heddle::video::testing;

struct SoundFixture : VideoFixture {
  heddle::test::TensorFile goldens{kTests / "goldens.safetensors"};
  heddle::test::TensorFile computed{kTests / "sound_goldens.safetensors"};

  static constexpr const char* kInputs =
      R"("a": {"class_type": "LoadAudio", "inputs": {"audio": "stereo_a.wav"}},
         "b": {"class_type": "LoadAudio", "inputs": {"audio": "mono_b.wav"}},
         "l": {"class_type": "SplitAudioChannels", "inputs": {"audio": ["a", 0]}}, )";

  // The output of that name of node "out", beside the inputs above.
  Results made(const std::string& node, const std::string& name) {
    return run(kInputs + (R"("out": )" + node) +
                   R"(, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}})",
               {"out." + name});
  }
  void check_made(const std::string& node, const std::string& golden, double tolerance,
                  const std::string& name = "AUDIO") {
    BOOST_TEST_CONTEXT(node) {
      const Results results = made(node, name);
      BOOST_TEST((results.shape("out." + name, "waveform") == computed.at(golden).shape));
      BOOST_TEST(greatest_difference(results.floats("out." + name, "waveform"),
                                     computed.floats(golden)) <= tolerance);
    }
  }
};

// One rounding of a number up to 1, or of a few of them.
constexpr double kOneRounding = 1.2e-7, kFewRoundings = 5e-7;

}  // namespace

BOOST_FIXTURE_TEST_SUITE(video_sound, SoundFixture)

BOOST_AUTO_TEST_CASE(files_of_any_rate_and_channels_are_read) {
  for (const char* name : {"mono_8k.wav", "six_channels.flac", "stereo.mp3", "bytes.wav"}) {
    BOOST_TEST_CONTEXT(name) {
      const Results results =
          run(R"("out": {"class_type": "LoadAudio", "inputs": {"audio": ")" + std::string(name) +
                  R"("}}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}})",
              {"out.AUDIO"});
      BOOST_TEST((results.shape("out.AUDIO", "waveform") == goldens.at(name).shape));
      BOOST_TEST(greatest_difference(results.floats("out.AUDIO", "waveform"),
                                     goldens.floats(name)) <= kFewRoundings);
    }
  }
  const std::string refused =
      refusal(R"("out": {"class_type": "LoadAudio", "inputs": {"audio": "many.mp4"}},
                 "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}})");
  BOOST_TEST(contains(refused, "many.mp4: there is no sound in this file"), refused);
}

BOOST_AUTO_TEST_CASE(sounds_are_put_together_as_pytorch_does_it) {
  const std::string pair = R"("inputs": {"audio1": ["a", 0], "audio2": ["b", 0], )";
  for (const char* direction : {"after", "before"})
    check_made(
        R"({"class_type": "AudioConcat", )" + pair + R"("direction": ")" + direction + "\"}}",
        direction, kFewRoundings);
  for (const char* method : {"add", "mean", "subtract", "multiply"})
    check_made(R"({"class_type": "AudioMerge", )" + pair + R"("merge_method": ")" + method + "\"}}",
               method, kFewRoundings);
  check_made(
      R"({"class_type": "JoinAudioChannels", "inputs": {"audio_left": ["l", 0], "audio_right": ["b", 0]}})",
      "joined", kFewRoundings, "audio");
}

BOOST_AUTO_TEST_CASE(a_sound_is_changed_as_pytorch_does_it) {
  check_made(R"({"class_type": "AudioAdjustVolume", "inputs": {"audio": ["a", 0], "volume": -7}})",
             "quieter", kOneRounding);
  check_made(R"({"class_type": "AudioEqualizer3Band", "inputs": {"audio": ["a", 0],
      "low_gain_dB": 6, "low_freq": 100, "mid_gain_dB": -4, "mid_freq": 1000, "mid_q": 2,
      "high_gain_dB": 9, "high_freq": 3000}})",
             "equalised", kFewRoundings);
  check_made(R"({"class_type": "TrimAudioDuration", "inputs": {"audio": ["a", 0],
      "start_index": -0.005, "duration": 0.002}})",
             "trimmed", 0);
  const std::string nothing = heddle::test::engine_refusal([&] {
    made(R"({"class_type": "TrimAudioDuration", "inputs": {"audio": ["a", 0], "start_index": 1,
        "duration": 1}})",
         "AUDIO");
  });
  BOOST_TEST(contains(nothing, "nothing is left of the sound of 0.012"), nothing);
  const std::string mono = heddle::test::engine_refusal([&] {
    made(R"({"class_type": "SplitAudioChannels", "inputs": {"audio": ["b", 0]}})", "left");
  });
  BOOST_TEST(contains(mono, "has 2 channels, this has 1"), mono);
}

BOOST_AUTO_TEST_CASE(silence_has_the_length_that_is_asked_for) {
  const Results results = made(R"({"class_type": "EmptyAudio", "inputs": {"duration": 0.25,
      "sample_rate": 16000, "channels": 1}})",
                               "AUDIO");
  BOOST_TEST((results.shape("out.AUDIO", "waveform") == std::vector<std::int64_t>{1, 1, 4000}));
  const Results latent =
      made(R"({"class_type": "EmptyLatentAudio", "inputs": {"seconds": 47.6, "batch_size": 2}})",
           "LATENT");
  BOOST_TEST((latent.shape("out.LATENT", "samples") == std::vector<std::int64_t>{2, 64, 1024}));
}

BOOST_AUTO_TEST_CASE(what_is_saved_is_what_is_loaded) {
  const std::string sound =
      R"("a": {"class_type": "LoadAudio", "inputs": {"audio": "six_channels.flac"}},
         "s": {"class_type": "LoadAudio", "inputs": {"audio": "stereo.mp3"}}, )";
  const Results saved_files = run(
      sound +
      R"("1": {"class_type": "SaveAudio", "inputs": {"audio": ["a", 0], "filename_prefix": "audio/x"}},
      "2": {"class_type": "SaveAudioMP3", "inputs": {"audio": ["s", 0], "filename_prefix": "m", "quality": "320k"}},
      "3": {"class_type": "SaveAudioOpus", "inputs": {"audio": ["s", 0], "filename_prefix": "o", "quality": "320k"}},
      "4": {"class_type": "SaveAudioAdvanced", "inputs": {"audio": ["s", 0], "filename_prefix": "v", "format": "mp3", "format.quality": "V0"}},
      "5": {"class_type": "PreviewAudio", "inputs": {"audio": ["s", 0]}})");
  for (const char* name :
       {"audio/x_00001_.flac", "m_00001_.mp3", "o_00001_.opus", "v_00001_.mp3"}) {
    BOOST_TEST(fs::exists(folder / "out" / name), name);
    BOOST_TEST(contains(bytes_of_file(folder / "out" / name), R"("class_type": "SaveAudioOpus")"),
               name);
  }
  const std::string ui = saved_files.ui();
  BOOST_TEST(
      contains(ui, R"("audio":[{"filename":"x_00001_.flac","subfolder":"audio","type":"output"}])"),
      ui);
  BOOST_TEST(contains(ui, R"("type":"temp")"), ui);
  const auto again = [&](const std::string& name) {
    return run(
        R"("out": {"class_type": "LoadAudio", "inputs": {"audio": ")" + name +
            R"( [output]"}}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}})",
        {"out.AUDIO"});
  };
  // 16 bits, as they came.
  BOOST_TEST((again("audio/x_00001_.flac").floats("out.AUDIO", "waveform") ==
              goldens.floats("six_channels.flac")));
  for (const char* name : {"m_00001_.mp3", "v_00001_.mp3", "o_00001_.opus"}) {
    const auto shape = again(name).shape("out.AUDIO", "waveform");
    BOOST_TEST((shape.size() == 3u && shape[1] == 2 && shape[2] > 1000), name);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::video
