// LTX 2 and 2.3 from prompts to the pictures of a video and its sound, out of one checkpoint and a
// text encoder as their published workflows load them, over weights that follow from their names,
// against transformers and diffusers (../goldens/make_ltx2_whole_goldens.py).
#include <cmath>

#include "tests/plugins/nodes/placed_fixture.h"

namespace heddle::test {
namespace {

using engine::cat;

struct Ltx2Whole : PlacedFixture {
  TensorFile expected{tests_folder() / "plugins/goldens/ltx2_whole/expected.safetensors"};

  Ltx2Whole() {
    std::vector<FileTensor> texts = seeded_model("text", false, "ltx2_text");
    const std::string bytes =
        read_text(tests_folder() / "plugins/encoders/tokenizer/data/bpe.model");
    texts.push_back({"spiece_model", "U8", {std::int64_t(bytes.size())}, bytes});
    add("text_encoders/gemma", texts);
  }
  // end: of the models' names, "" or "23".
  void add_checkpoint(const std::string& end, const char* vocoder,
                      const std::string& config) const {
    std::vector<FileTensor> all = seeded_model("projected" + end, false, "ltx2_text");
    for (FileTensor& tensor : seeded_model("transformer" + end, false, "ltx2_whole"))
      all.push_back(std::move(tensor));
    add_part(all, ("vae" + end).c_str(), "vae.", "ltx2_whole");
    add_part(all, "vae", "audio_vae.", "ltx2_audio");
    add_part(all, vocoder, "vocoder.", "ltx2_audio");
    std::filesystem::create_directories(folder / "models/checkpoints");
    write_safetensors(folder / "models/checkpoints/ltx2.safetensors", all,
                      {{"config", escaped(config)}});
  }
  void add_2() const {
    add_checkpoint("", "vocoder",
                   R"({"transformer": {"num_attention_heads": 4, "audio_num_attention_heads": 4,
                            "connector_num_attention_heads": 2, "audio_connector_num_attention_heads": 2},
            "audio_vae": {"model": {"params": {"ddconfig": {"mel_bins": 16}}}}})");
  }
  // As the publishers' file: its decoder is causal and has another order, its vocoder two stages.
  void add_23() const {
    add_checkpoint("23", "stages",
                   R"({"transformer": {"num_attention_heads": 2, "audio_num_attention_heads": 2,
                            "connector_num_attention_heads": 2, "audio_connector_num_attention_heads": 2},
            "vae": {"causal_decoder": true, "decoder_spatial_padding_mode": "zeros",
                    "decoder_blocks": [["res_x", {"num_layers": 1}], ["compress_space", {"multiplier": 2}],
                      ["res_x", {"num_layers": 2}], ["compress_time", {"multiplier": 2}],
                      ["res_x", {"num_layers": 1}], ["compress_all", {"multiplier": 1}],
                      ["res_x", {"num_layers": 1}], ["compress_all", {"multiplier": 2}],
                      ["res_x", {"num_layers": 1}]]},
            "audio_vae": {"model": {"params": {"ddconfig": {"mel_bins": 16}}}},
            "vocoder": {"vocoder": {"upsample_rates": [5, 2], "resblock_dilation_sizes": [[1, 3], [1, 3]],
                                    "use_tanh_at_final": false},
                        "bwe": {"upsample_rates": [5, 3], "resblock_dilation_sizes": [[1, 3], [1, 3]],
                                "apply_final_activation": false, "hop_length": 5,
                                "input_sampling_rate": 16000, "output_sampling_rate": 48000}}})");
  }
  // As a header of JSON holds it.
  static std::string escaped(const std::string& config) {
    std::string out;
    for (const char c : config) out += c == '"' ? "\\\"" : c == '\n' ? " " : std::string(1, c);
    return out;
  }
  static void add_part(std::vector<FileTensor>& all, const char* model, const std::string& prefix,
                       const char* golden) {
    for (FileTensor& tensor : seeded_model(model, false, golden)) {
      if (tensor.name.ends_with("std-of-means"))
        tensor = seeded_tensor(tensor.name, tensor.shape, "std.norm.weight");
      if (tensor.name.ends_with("mel_basis"))
        tensor = seeded_tensor(tensor.name, tensor.shape, "bands.norm.weight");
      if (tensor.name.ends_with(".filter"))  // around the activations of a vocoder
        tensor.bytes = bytes_of_floats(
            TensorFile(tests_folder() / "plugins/goldens/ltx2_audio/expected.safetensors")
                .floats("filter"));
      tensor.name = prefix + tensor.name;
      all.push_back(std::move(tensor));
    }
  }

  // Of 9 pictures of 96 x 64 and their sound.
  static std::string flow() {
    return R"({"files": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "ltx2.safetensors"}},
      "audio_vae": {"class_type": "LTXVAudioVAELoader", "inputs": {"ckpt_name": "ltx2.safetensors"}},
      "clip": {"class_type": "LTXAVTextEncoderLoader", "inputs": {
        "text_encoder": "gemma.safetensors", "ckpt_name": "ltx2.safetensors", "device": "default"}},
      "one": {"class_type": "CLIPTextEncode", "inputs": {"text": "a photo of a red fox in the snow", "clip": ["clip", 0]}},
      "two": {"class_type": "CLIPTextEncode", "inputs": {"text": "", "clip": ["clip", 0]}},
      "told": {"class_type": "LTXVConditioning", "inputs": {"frame_rate": 24.0, "positive": ["one", 0], "negative": ["two", 0]}},
      "pictures": {"class_type": "EmptyLTXVLatentVideo", "inputs": {"width": 96, "height": 64, "length": 9, "batch_size": 1}},
      "sound": {"class_type": "LTXVEmptyLatentAudio", "inputs": {
        "frames_number": 9, "frame_rate": 24.0, "batch_size": 1, "audio_vae": ["audio_vae", 0]}},
      "both": {"class_type": "LTXVConcatAVLatent", "inputs": {"video_latent": ["pictures", 0], "audio_latent": ["sound", 0]}},
      "noise": {"class_type": "RandomNoise", "inputs": {"noise_seed": 7}},
      "guider": {"class_type": "CFGGuider", "inputs": {"model": ["files", 0], "positive": ["told", 0], "negative": ["told", 1], "cfg": 3.0}},
      "sigmas": {"class_type": "ManualSigmas", "inputs": {"sigmas": "1.0, 0.75, 0.5, 0.0"}},
      "euler": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}},
      "drawn": {"class_type": "SamplerCustomAdvanced", "inputs": {"noise": ["noise", 0], "guider": ["guider", 0],
        "sampler": ["euler", 0], "sigmas": ["sigmas", 0], "latent_image": ["both", 0]}},
      "parts": {"class_type": "LTXVSeparateAVLatent", "inputs": {"av_latent": ["drawn", 0]}},
      "video": {"class_type": "VAEDecode", "inputs": {"samples": ["parts", 0], "vae": ["files", 2]}},
      "audio": {"class_type": "LTXVAudioVAEDecode", "inputs": {"samples": ["parts", 1], "audio_vae": ["audio_vae", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["video", 0]}},
      "listen": {"class_type": "test.look", "inputs": {"value": ["audio", 0]}}})";
  }
  // Pictures and sound.
  std::pair<std::vector<float>, std::vector<float>> made(EngineOptions options) const {
    Engine engine(std::move(options));
    const heddle::Results results =
        engine.start(engine.parse(flow()), {{}, {"video.IMAGE", "audio.Audio"}}).wait();
    return {results.floats("video.IMAGE"), results.floats("audio.Audio", "waveform")};
  }
  // Of each second picture each eighth row and column.
  static std::vector<float> some_of(const std::vector<float>& pictures) {
    constexpr std::size_t kHeight = 64, kWidth = 96, kColours = 3;
    BOOST_TEST_REQUIRE(pictures.size() == 9 * kHeight * kWidth * kColours);
    std::vector<float> some;
    for (std::size_t frame = 0; frame < 9; frame += 2)
      for (std::size_t y = 0; y < kHeight; y += 8)
        for (std::size_t x = 0; x < kWidth; x += 8)
          for (std::size_t c = 0; c < kColours; ++c)
            some.push_back(pictures[((frame * kHeight + y) * kWidth + x) * kColours + c]);
    return some;
  }
  static std::vector<float> each(const std::vector<float>& sound, std::size_t step) {
    std::vector<float> points;
    for (std::size_t i = 0; i < sound.size(); i += step) points.push_back(sound[i]);
    return points;
  }
  void hold_bytes() const {
    const auto alone = made(options_for({"cpu:0"}));
    for (const std::uint64_t budget : {0, 8 << 20}) {
      const auto placed = made(options_for({"fake:0"}, budget));
      BOOST_TEST(are_equal(alone.first, placed.first), budget);
      BOOST_TEST(are_equal(alone.second, placed.second), budget);
    }
  }
  void compare(const std::vector<float>& got, const char* wanted, double least) const {
    const double decibels = -20 * std::log10(relative_error(got, expected.floats(wanted)));
    BOOST_TEST_MESSAGE(wanted << ": " << decibels << " dB");
    BOOST_TEST(decibels >= least, wanted << ": " << decibels << " dB");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(ltx2_whole, Ltx2Whole)

BOOST_AUTO_TEST_CASE(a_video_and_its_sound_of_prompts_equal_those_of_diffusers) {
  add_2();
  const auto [pictures, sound] = made(options_for({"cpu:0"}));
  compare(some_of(pictures), "pictures", 70);
  BOOST_TEST_REQUIRE(sound.size() == 2u * 8880);
  compare(each(sound, 4), "waveform", 60);
}

BOOST_AUTO_TEST_CASE(a_video_and_its_sound_by_2_3_equal_those_of_diffusers) {
  add_23();
  const auto [pictures, sound] = made(options_for({"cpu:0"}));
  compare(some_of(pictures), "23.pictures", 70);
  compare(sound, "23.waveform", 60);
}

BOOST_AUTO_TEST_CASE(other_placements_make_the_same_bytes, *boost::unit_test::label("long")) {
  add_2();
  hold_bytes();
}

BOOST_AUTO_TEST_CASE(other_placements_of_2_3_make_the_same_bytes,
                     *boost::unit_test::label("long")) {
  add_23();
  hold_bytes();
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
