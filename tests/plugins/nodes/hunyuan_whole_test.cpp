// HunyuanVideo 1.5 from texts, and from a picture, to the pictures of a video, out of the files
// that its published workflows load, over weights that follow from their names, against
// transformers and diffusers (../goldens/make_hunyuan_whole_goldens.py).
#include <cmath>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

namespace heddle::test {
namespace {

using engine::cat;

constexpr const char* kWords =
    R"(a shop sign \"Open\" beside one that says “brød & øl”, above “Open” and \"24 h\")";
constexpr const char* kOdd =
    R"(an open \" mark, “ a line\nthat ends before the mark does”, and \"\" (nothing:1.2))";

struct HunyuanWhole : PlacedFixture {
  TensorFile expected{tests_folder() / "plugins/goldens/hunyuan_whole/expected.safetensors"};

  HunyuanWhole() {
    input_dir = tests_folder() / "plugins/goldens/edit";
    add("text_encoders/qwen_2.5_vl_7b_fp8_scaled", seeded_model("text", false, "hunyuan_whole"));
    add("text_encoders/byt5_small_glyphxl_fp16", seeded_model("glyphs", false, "hunyuan_whole"));
  }
  void add_models() const {
    for (const char* name : {"t2v", "i2v"})
      add(cat("diffusion_models/hunyuanvideo1.5_720p_", name, "_fp16"),
          seeded_model("transformer", false, "hunyuan_whole"));
    add("vae/hunyuanvideo15_vae_fp16", seeded_model("vae", false, "hunyuan_whole"));
    add("clip_vision/sigclip_vision_patch14_384", seeded_model("siglip", false, "redux"));
  }
  static std::string clip(const char* one = "qwen_2.5_vl_7b_fp8_scaled",
                          const char* two = "byt5_small_glyphxl_fp16",
                          const char* type = "hunyuan_video_15") {
    return cat(R"("clip": {"class_type": "DualCLIPLoader", "inputs": {"clip_name1": ")", one,
               R"(.safetensors", "clip_name2": ")", two, R"(.safetensors", "type": ")", type,
               R"(", "device": "default"}})");
  }
  static std::string encoded(const char* text) {
    return cat(R"({"class_type": "CLIPTextEncode", "inputs": {"text": ")", text,
               R"(", "clip": ["clip", 0]}})");
  }
  heddle::Results states(const char* text, const std::string& loader = clip()) {
    return run_whole(
        cat("{", loader, R"(, "text": )", encoded(text),
            R"(, "entry": {"class_type": "test.first", "inputs": {"list": ["text", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["entry", 0]}}})"),
        {"entry.value"});
  }
  void hold(const heddle::Results& results, const char* field, const std::string& name) const {
    const double error =
        relative_error(results.floats("entry.value", field), expected.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < kTolerance, name << ": relative error " << error);
  }

  // The published workflow; first: where the video begins with a picture.
  static std::string flow(bool first) {
    return cat(
        "{", clip(), R"(, "one": )", encoded(kWords), R"(, "two": )", encoded(""), ", ",
        loaded(first ? "hunyuanvideo1.5_720p_i2v_fp16" : "hunyuanvideo1.5_720p_t2v_fp16"),
        R"(, "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "hunyuanvideo15_vae_fp16.safetensors"}},
      "tower": {"class_type": "CLIPVisionLoader", "inputs": {"clip_name": "sigclip_vision_patch14_384.safetensors"}},
      "picture": {"class_type": "LoadImage", "inputs": {"image": "one.png"}},
      "seen": {"class_type": "CLIPVisionEncode", "inputs": {"clip_vision": ["tower", 0], "image": ["picture", 0], "crop": "center"}},
      "begun": {"class_type": "HunyuanVideo15ImageToVideo", "inputs": {"positive": ["one", 0], "negative": ["two", 0],
        "vae": ["vae", 0], "width": 64, "height": 48, "length": 5, "batch_size": 1, "start_image": ["picture", 0],
        "clip_vision_output": ["seen", 0]}},
      "empty": {"class_type": "EmptyHunyuanVideo15Latent", "inputs": {"width": 64, "height": 48, "length": 5, "batch_size": 1}},
      "shifted": {"class_type": "ModelSamplingSD3", "inputs": {"model": ["model", 0], "shift": 7.0}},
      "noise": {"class_type": "RandomNoise", "inputs": {"noise_seed": 7}},
      "guider": {"class_type": "CFGGuider", "inputs": {"model": ["shifted", 0], "cfg": 3.0, )",
        first ? R"("positive": ["begun", 0], "negative": ["begun", 1])"
              : R"("positive": ["one", 0], "negative": ["two", 0])",
        R"(}},
      "sigmas": {"class_type": "BasicScheduler", "inputs": {"model": ["shifted", 0], "scheduler": "simple", "steps": 3, "denoise": 1.0}},
      "euler": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}},
      "out": {"class_type": "SamplerCustomAdvanced", "inputs": {"noise": ["noise", 0], "guider": ["guider", 0],
        "sampler": ["euler", 0], "sigmas": ["sigmas", 0], "latent_image": )",
        first ? R"(["begun", 2])" : R"(["empty", 0])", R"(}},
      "video": {"class_type": "VAEDecode", "inputs": {"samples": ["out", 0], "vae": ["vae", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["video", 0]}}})");
  }
  // Of the device that is tested, in f32.
  EngineOptions tested() const {
    EngineOptions options = engine_options();
    options.compute[test_device_kind()] = "f32";
    options.model_dirs = {folder / "models"};
    options.input_dir = input_dir;
    options.output_dir = folder / "drawn";
    return options;
  }
  static std::vector<float> pictures(EngineOptions options, const std::string& flow) {
    Engine engine(std::move(options));
    return engine.start(engine.parse(flow), {{}, {"video.IMAGE"}}).wait().floats("video.IMAGE");
  }
  void draws(bool first, const std::string& name) const {
    const std::vector<float> made = pictures(tested(), flow(first)),
                             wanted = expected.floats(name + ".pictures");
    BOOST_TEST_REQUIRE(made.size() == wanted.size());
    double squares = 0;
    for (std::size_t i = 0; i < made.size(); ++i)
      squares += std::pow(double(made[i]) - wanted[i], 2);
    const double decibels = -10 * std::log10(squares / double(made.size()));
    BOOST_TEST_MESSAGE(name << ": " << decibels << " dB");
    BOOST_TEST(decibels >= 70, name << ": " << decibels << " dB");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(hunyuan_whole, HunyuanWhole)

BOOST_AUTO_TEST_CASE(texts_and_what_they_quote_equal_the_pipeline) {
  const std::pair<const char*, const char*> texts[] = {
      {"plain", "a red fox walks through the deep snow"},
      {"words", kWords},
      {"none", ""},
      {"odd", kOdd}};
  for (const auto& [name, text] : texts) {
    const heddle::Results results = states(text);
    hold(results, "cross_attn", cat(name, ".cross_attn"));
    const bool quotes = expected.entries().contains(cat(name, ".byt5"));
    BOOST_TEST(quotes == (name == std::string("words") || name == std::string("odd")));
    if (quotes)
      hold(results, "conditioning_byt5small", cat(name, ".byt5"));
    else
      BOOST_CHECK_THROW(results.floats("entry.value", "conditioning_byt5small"), std::exception);
  }
}

BOOST_AUTO_TEST_CASE(either_order_of_the_files_is_the_same_and_a_wrong_pair_is_refused,
                     *boost::unit_test::label("long")) {
  hold(states(kWords, clip("byt5_small_glyphxl_fp16", "qwen_2.5_vl_7b_fp8_scaled")),
       "conditioning_byt5small", "words.byt5");
  const std::string refused =
      engine_refusal([&] { states("", clip("qwen_2.5_vl_7b_fp8_scaled", "clip_l")); });
  for (const char* word : {"qwen_2.5_vl_7b_fp8_scaled.safetensors", "qwen2.5 and clip_l",
                           "'hunyuan_video_15'", "byt5_small_glyphxl_fp16.safetensors"})
    BOOST_TEST(refused.find(word) != std::string::npos, refused);
}

BOOST_AUTO_TEST_CASE(from_texts_to_the_pictures_of_a_video_equals_pytorch) {
  add_models();
  draws(false, "drawn");
}

BOOST_AUTO_TEST_CASE(a_video_that_begins_with_a_picture_equals_pytorch,
                     *boost::unit_test::label("long")) {
  add_models();
  draws(true, "shown");
}

BOOST_AUTO_TEST_CASE(plans_know_what_runs_ask_of_the_models, *boost::unit_test::label("long")) {
  add_models();
  for (const bool first : {false, true}) {
    heddle::Engine::Data told(options_for({"cpu:0"}));
    check_inference(told, flow(first));
  }
}

BOOST_AUTO_TEST_CASE(other_placements_make_the_same_bytes, *boost::unit_test::label("long")) {
  add_models();
  const std::vector<float> alone = pictures(options_for({"cpu:0"}), flow(true));
  for (const std::uint64_t budget : {0, 96 << 20})
    BOOST_TEST(are_equal(alone, pictures(options_for({"fake:0"}, budget), flow(true))), budget);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
