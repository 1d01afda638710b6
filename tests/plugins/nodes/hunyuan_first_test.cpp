// HunyuanVideo 1.0 from a text to the pictures of a video, out of the files that its published
// workflow loads, and its autoencoder by itself, over weights that follow from their names, against
// transformers and diffusers (../goldens/make_hunyuan_first_goldens.py).
#include <algorithm>
#include <cmath>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

namespace heddle::test {
namespace {

using engine::cat;

constexpr const char* kFirstText = "a red fox walks through the deep snow – günstig";

struct HunyuanFirst : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/hunyuan_first/expected.safetensors";
  TensorFile expected{golden};

  void add_encoders(bool with_vocabulary = true) const {
    add("text_encoders/llava_llama3_fp8_scaled", seeded_model("llama", false, "hunyuan_first"));
    add("text_encoders/clip_large", seeded_model("clip", false, "hunyuan_first"));
    if (!with_vocabulary) return;
    std::filesystem::create_directories(folder / "models/tokenizers/llama3");
    std::filesystem::copy_file(golden.parent_path() / "tokenizer.json",
                               folder / "models/tokenizers/llama3/tokenizer.json");
  }
  void add_vae() const {
    add("vae/hunyuan_video_vae_bf16", seeded_model("vae", false, "hunyuan_first"));
  }
  void add_models() const {
    add_encoders();
    add_vae();
    add("diffusion_models/hunyuan_video_t2v_720p_bf16",
        seeded_model("transformer", false, "hunyuan_first"));
  }
  static std::string encoded() {
    return cat(
        R"("clip": {"class_type": "DualCLIPLoader", "inputs": {"clip_name1": "clip_large.safetensors",
        "clip_name2": "llava_llama3_fp8_scaled.safetensors", "type": "hunyuan_video", "device": "default"}},
      "text": {"class_type": "CLIPTextEncode", "inputs": {"text": ")",
        kFirstText, R"(", "clip": ["clip", 0]}})");
  }
  heddle::Results states() {
    return run_whole(
        cat("{", encoded(),
            R"(, "entry": {"class_type": "test.first", "inputs": {"list": ["text", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["entry", 0]}}})"),
        {"entry.value"});
  }
  // The published workflow.
  static std::string flow(const std::string& decode = R"("VAEDecode", "inputs": {)") {
    return cat(
        "{", encoded(), ", ", loaded("hunyuan_video_t2v_720p_bf16"),
        R"(, "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "hunyuan_video_vae_bf16.safetensors"}},
      "told": {"class_type": "FluxGuidance", "inputs": {"conditioning": ["text", 0], "guidance": 6.0}},
      "empty": {"class_type": "EmptyHunyuanLatentVideo", "inputs": {"width": 64, "height": 48, "length": 5, "batch_size": 1}},
      "shifted": {"class_type": "ModelSamplingSD3", "inputs": {"model": ["model", 0], "shift": 7.0}},
      "noise": {"class_type": "RandomNoise", "inputs": {"noise_seed": 7}},
      "guider": {"class_type": "BasicGuider", "inputs": {"model": ["shifted", 0], "conditioning": ["told", 0]}},
      "sigmas": {"class_type": "BasicScheduler", "inputs": {"model": ["shifted", 0], "scheduler": "simple", "steps": 3, "denoise": 1.0}},
      "euler": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}},
      "out": {"class_type": "SamplerCustomAdvanced", "inputs": {"noise": ["noise", 0], "guider": ["guider", 0],
        "sampler": ["euler", 0], "sigmas": ["sigmas", 0], "latent_image": ["empty", 0]}},
      "video": {"class_type": )",
        decode, R"("samples": ["out", 0], "vae": ["vae", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["video", 0]}}})");
  }
  // Of the device that is tested, in f32.
  EngineOptions tested() const {
    EngineOptions options = engine_options();
    options.compute[test_device_kind()] = "f32";
    options.model_dirs = {folder / "models"};
    options.output_dir = folder / "drawn";
    return options;
  }
  static std::vector<float> pictures(EngineOptions options, const std::string& flow) {
    Engine engine(std::move(options));
    return engine.start(engine.parse(flow), {{}, {"video.IMAGE"}}).wait().floats("video.IMAGE");
  }
  // A node of the autoencoder alone.
  heddle::Results coded(const char* type, const char* in, const std::string& name, const char* port,
                        const char* output) {
    return run_whole(
        cat(R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": "hunyuan_video_vae_bf16.safetensors"}},
      "in": {"class_type": ")",
            in, R"(", "inputs": {"path": ")", golden.string(), R"(", "name": ")", name,
            R"("}}, "out": {"class_type": ")", type, R"(", "inputs": {"vae": ["vae", 0], ")", port,
            R"(": ["in", 0]}}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})"),
        {output});
  }
  static void hold(const std::vector<float>& made, const std::vector<float>& wanted,
                   const std::string& what) {
    const double error = relative_error(made, wanted);
    BOOST_TEST_MESSAGE(what << ": relative error " << error);
    BOOST_TEST(error < kTolerance, what << ": relative error " << error);
  }
  void decodes(const std::string& clip) {
    std::vector<float> wanted = expected.floats(clip + "decoded");
    for (float& number : wanted) number = std::clamp(number, 0.0f, 1.0f);
    const heddle::Results results =
        coded("VAEDecode", "test.latent", clip + "latent", "samples", "out.IMAGE");
    BOOST_TEST(results.shape("out.IMAGE") == expected.at(clip + "decoded").shape,
               boost::test_tools::per_element());
    hold(results.floats("out.IMAGE"), wanted, clip + "decoded");
  }
  void equals_pytorch_both_ways() {
    for (const std::string clip : {"1.", "5.", "9."}) {
      decodes(clip);
      std::vector<float> wanted = expected.floats(clip + "mean");
      for (float& number : wanted) number *= 0.476986f;
      hold(coded("VAEEncode", "test.image", clip + "frames", "pixels", "out.LATENT")
               .floats("out.LATENT", "samples"),
           wanted, clip + "mean");
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(hunyuan_first, HunyuanFirst)

BOOST_AUTO_TEST_CASE(states_of_a_text_equal_transformers) {
  add_encoders();
  const heddle::Results results = states();
  const std::vector<float> all = results.floats("entry.value", "cross_attn");
  std::vector<float> some;
  for (std::size_t i = 0; i < all.size(); i += 16) some.push_back(all[i]);
  hold(some, expected.floats("text.cross_attn"), "cross_attn");
  hold(results.floats("entry.value", "pooled_output"), expected.floats("text.pooled_output"),
       "pooled_output");
}

BOOST_AUTO_TEST_CASE(without_its_vocabulary_the_encoder_says_where_it_belongs) {
  add_encoders(false);
  const std::string refused = engine_refusal([&] { states(); });
  for (const char* word :
       {"llava_llama3_fp8_scaled.safetensors", "llama3", "tokenizers/llama3", "tokenizer.json"})
    BOOST_TEST(refused.find(word) != std::string::npos, refused);
}

BOOST_AUTO_TEST_CASE(videos_through_the_autoencoder_equal_those_of_diffusers) {
  add_vae();
  equals_pytorch_both_ways();
}

BOOST_AUTO_TEST_CASE(pictures_are_videos_of_one_frame_each) {
  add_vae();
  decodes("pictures.");
}

BOOST_AUTO_TEST_CASE(names_of_diffusers_give_the_same_videos) {
  add("vae/hunyuan_video_vae_bf16", seeded_model("vae_diffusers", true, "hunyuan_first"));
  equals_pytorch_both_ways();
}

BOOST_AUTO_TEST_CASE(from_a_text_to_the_pictures_of_a_video_equals_pytorch) {
  add_models();
  const std::vector<float> made = pictures(tested(), flow()),
                           wanted = expected.floats("drawn.pictures");
  BOOST_TEST_REQUIRE(made.size() == wanted.size());
  double squares = 0;
  for (std::size_t i = 0; i < made.size(); ++i) squares += std::pow(double(made[i]) - wanted[i], 2);
  const double decibels = -10 * std::log10(squares / double(made.size()));
  BOOST_TEST_MESSAGE(decibels << " dB");
  BOOST_TEST(decibels >= 70, decibels << " dB");
}

BOOST_AUTO_TEST_CASE(plans_know_what_runs_ask_of_the_models, *boost::unit_test::label("long")) {
  add_models();
  heddle::Engine::Data told(options_for({"cpu:0"}));
  check_inference(told, flow());
}

// A tile of the whole video is the whole video.
BOOST_AUTO_TEST_CASE(one_tile_makes_the_same_bytes_and_other_placements_do,
                     *boost::unit_test::label("long")) {
  add_models();
  const std::vector<float> alone = pictures(options_for({"cpu:0"}), flow());
  const std::string tiled =
      R"("VAEDecodeTiled", "inputs": {"tile_size": 256, "overlap": 64, "temporal_size": 64, "temporal_overlap": 8, )";
  hold(pictures(options_for({"cpu:0"}), flow(tiled)), alone, "tiled");
  for (const std::uint64_t budget : {0, 48 << 20})
    BOOST_TEST(are_equal(alone, pictures(options_for({"fake:0"}, budget), flow())), budget);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
