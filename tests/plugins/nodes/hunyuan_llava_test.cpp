// TextEncodeHunyuanVideo_ImageToVideo: what Llama 3 makes of a text and of what LLaVA's vision
// tower saw, against transformers (../goldens/make_hunyuan_llava_goldens.py).
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"
#include "tests/support/lent_tensor.h"

namespace heddle::test {
namespace {

using engine::cat;

constexpr const char* kLlavaText = "a red fox walks through the deep snow – günstig";
constexpr std::size_t kEachNumber = 16;  // that is in the golden

struct HunyuanLlava : PlacedFixture {
  const std::filesystem::path goldens = tests_folder() / "plugins/goldens",
                              golden = goldens / "hunyuan_llava/expected.safetensors";
  TensorFile expected{golden};

  HunyuanLlava() {
    add("text_encoders/llava_llama3_fp8_scaled", seeded_model("llama", false, "hunyuan_first"));
    add("text_encoders/clip_large", seeded_model("clip", false, "hunyuan_first"));
    add("clip_vision/llava_llama3_vision", seeded_model("tower", false, "hunyuan_llava"));
    std::vector<FileTensor> plain = seeded_model("tower", false, "hunyuan_llava");
    std::erase_if(plain, [](const FileTensor& tensor) {
      return tensor.name.starts_with("multi_modal_projector");
    });
    add("clip_vision/plain", plain);
    std::filesystem::create_directories(folder / "models/tokenizers/llama3");
    std::filesystem::copy_file(goldens / "hunyuan_first/tokenizer.json",
                               folder / "models/tokenizers/llama3/tokenizer.json");
  }
  std::string flow(int each, const std::string& tower = "llava_llama3_vision",
                   const std::string& text = kLlavaText, const std::string& picture = "") const {
    return cat(
        R"({"clip": {"class_type": "DualCLIPLoader", "inputs": {"clip_name1": "clip_large.safetensors",
        "clip_name2": "llava_llama3_fp8_scaled.safetensors", "type": "hunyuan_video", "device": "default"}},
      "tower": {"class_type": "CLIPVisionLoader", "inputs": {"clip_name": ")",
        tower, R"(.safetensors"}}, "picture": )",
        picture.empty() ? cat(R"({"class_type": "test.image", "inputs": {"path": ")",
                              golden.string(), R"(", "name": "picture"}})")
                        : picture,
        R"(, "seen": {"class_type": "CLIPVisionEncode", "inputs": {"clip_vision": ["tower", 0], "image": ["picture", 0], "crop": "center"}},
      "out": {"class_type": "TextEncodeHunyuanVideo_ImageToVideo", "inputs": {"clip": ["clip", 0], "clip_vision_output": ["seen", 0],
        "image_interleave": )",
        each, R"(, "prompt": ")", text,
        R"("}}, "entry": {"class_type": "test.first", "inputs": {"list": ["out", 0]}},
      "plain": {"class_type": "CLIPTextEncode", "inputs": {"text": ")",
        text,
        R"(", "clip": ["clip", 0]}}, "other": {"class_type": "test.first", "inputs": {"list": ["plain", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["entry", 0]}},
      "see": {"class_type": "test.look", "inputs": {"value": ["seen", 0]}},
      "third": {"class_type": "test.look", "inputs": {"value": ["other", 0]}}})");
  }
  static std::vector<float> some(const std::vector<float>& all) {
    std::vector<float> picked;
    for (std::size_t i = 0; i < all.size(); i += kEachNumber) picked.push_back(all[i]);
    return picked;
  }
  void hold(const std::vector<float>& made, const std::string& name) {
    const double error = relative_error(some(made), expected.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < kTolerance, name << ": relative error " << error);
  }
  void refused(const std::string& flow, std::initializer_list<const char*> words) {
    const std::string text = engine_refusal([&] { run_whole(flow, {}); });
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(hunyuan_llava, HunyuanLlava)

BOOST_AUTO_TEST_CASE(states_of_a_text_and_a_picture_equal_transformers) {
  for (const int each : {1, 2, 4}) {
    const heddle::Results results =
        run_whole(flow(each), {"entry.value", "other.value", "seen.CLIP_VISION_OUTPUT"});
    hold(results.floats("entry.value", "cross_attn"), cat("states.", each));
    if (each > 1) continue;
    hold(results.floats("seen.CLIP_VISION_OUTPUT", "mm_projected"), "tokens");
    // CLIP-L reads the text alone.
    BOOST_TEST((results.floats("entry.value", "pooled_output") ==
                results.floats("other.value", "pooled_output")));
  }
}

BOOST_AUTO_TEST_CASE(a_text_and_a_picture_are_told_before_a_run) {
  heddle::Engine::Data data(options_for({"cpu:0"}));
  check_inference(data, flow(2, "llava_llama3_vision", kLlavaText,
                             R"({"class_type": "EmptyImage", "inputs": {"width": 60, "height": 50,
                                 "batch_size": 1, "color": 255000}})"));
}

// As in ComfyUI: what is read ends with the user's turn, and begins with the text, or where that
// begins with a gap of its own, with the mark before it.
BOOST_AUTO_TEST_CASE(the_users_turn_alone_is_read) {
  const auto tokens = [&](const std::string& text) {
    return run_whole(flow(1, "llava_llama3_vision", text), {"entry.value"})
        .shape("entry.value", "cross_attn")[1];
  };
  const std::int64_t one = tokens("a");
  BOOST_TEST(one == 9 + 1 + 1);  // the picture's, a letter, the end of the turn
  BOOST_TEST(tokens("ab") == one + 1);
  BOOST_TEST(tokens("a<|eot_id|>b") == one);
}

BOOST_AUTO_TEST_CASE(what_cannot_look_at_a_picture_is_refused) {
  refused(flow(2, "plain"), {"clip_vision_output", "llava_llama3_vision.safetensors"});
  LentTensor flat({2, 3}, std::vector<float>(6));
  const std::map<std::string, DLManagedTensor*> seen{{"mm_projected", flat.lend()}};
  const std::string text = engine_refusal([&] {
    Engine engine(options_for({"cpu:0"}));
    engine
        .start(engine.parse(flow(2)),
               {.fetch = {"entry.value"}, .inputs = {{"out.clip_vision_output", seen}}})
        .wait();
  });
  BOOST_TEST(text.find("makes no tokens for Llama 3") != std::string::npos, text);
  std::string other = flow(2);
  const std::string clip = R"("clip": ["clip", 0], "clip_vision_output")";
  other.replace(other.find(clip), clip.size(), R"("clip": ["single", 0], "clip_vision_output")");
  other.insert(
      1, R"("single": {"class_type": "CLIPLoader", "inputs": {"clip_name": "clip_large.safetensors",
      "type": "stable_diffusion", "device": "default"}}, )");
  refused(other, {"stable_diffusion", "hunyuan_video", "DualCLIPLoader"});
}

BOOST_AUTO_TEST_CASE(looking_at_a_picture_by_two_devices_and_with_little_memory_keeps_the_bytes,
                     *boost::unit_test::label("long")) {
  const auto states = [&](EngineOptions options) {
    Engine engine(std::move(options));
    return engine.start(engine.parse(flow(2)), {{}, {"entry.value"}})
        .wait()
        .floats("entry.value", "cross_attn");
  };
  const std::vector<float> alone = states(options_for({"cpu:0"}));
  BOOST_TEST(are_equal(alone, states(options_for({"fake:0", "fake:1"}))), "two devices");
  BOOST_TEST(are_equal(alone, states(options_for({"fake:0"}, std::uint64_t{72} << 20))),
             "little memory");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
