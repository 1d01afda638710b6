// Texts that Gemma 4 writes of pictures and videos, over weights that follow from their names,
// against what transformers writes, the likeliest token each time
// (../goldens/make_gemma4_picture_goldens.py).
#include "tests/support/gemma4_pictures.h"
#include "plugins/encoders/ltx2_prompts.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;

namespace {

struct Gemma4Pictures : PlacedFixture {
  const std::filesystem::path goldens = tests_folder() / "plugins/goldens/gemma4_pictures";
  TensorFile expected{goldens / "expected.safetensors"};
  static constexpr const char* kFox = R"("image": ["fox", 0])";
  static constexpr const char* kBoth = R"("image": ["both", 0])";
  static constexpr const char* kVideo = R"("video": ["video", 0])";
  static constexpr const char* kWords = R"("prompt": "a red fox")";

  Gemma4Pictures() {
    input_dir = folder / "input";
    std::filesystem::create_directories(input_dir);
    std::filesystem::copy_file(goldens / "fox.png", input_dir / "fox.png");
    const std::string bytes = read_text(goldens / "tokenizer.json");
    for (const char* model : {"told", "dense"}) {
      std::vector<FileTensor> tensors = gemma4_seeing(model);
      tensors.push_back({"tokenizer_json", "U8", {std::int64_t(bytes.size())}, bytes});
      add(std::string("text_encoders/") + model, tensors);
    }
  }

  // The picture, the picture and its mirror image, and a video that shows one a second.
  static std::string flow(const std::string& model, const char* node, const std::string& inputs,
                          int tokens, const std::string& hints = "") {
    return heddle::engine::cat(R"({"clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": ")",
                               model,
                               R"(.safetensors", "type": "ltxv"}},
      "fox": {"class_type": "LoadImage", "inputs": {"image": "fox.png"}},
      "mirrored": {"class_type": "ImageFlip", "inputs": {"image": ["fox", 0], "flip_method": "y-axis: horizontally"}},
      "both": {"class_type": "ImageBatch", "inputs": {"image1": ["fox", 0], "image2": ["mirrored", 0]}},
      "second": {"class_type": "RepeatImageBatch", "inputs": {"image": ["fox", 0], "amount": 24}},
      "video": {"class_type": "ImageBatch", "inputs": {"image1": ["second", 0], "image2": ["mirrored", 0]}},
      "written": {"class_type": ")",
                               node, R"(", "inputs": {"clip": ["clip", 0], "max_length": )", tokens,
                               R"(, "sampling_mode": "off", )", inputs, "}", hints, R"(},
      "look": {"class_type": "test.look", "inputs": {"value": ["written", 0]}}})");
  }
  std::vector<std::string> said;  // warnings of the last run
  std::string run_on(heddle::EngineOptions options, const std::string& flow) {
    heddle::Engine engine(std::move(options));
    said.clear();
    const auto hear = [&](const heddle::Event& event) {
      if (event.kind == heddle::Event::Kind::warning) said.emplace_back(event.text);
    };
    return engine.start(engine.parse(flow), {hear, {"written.generated_text"}})
        .wait()
        .text("written.generated_text");
  }
  std::string written(const std::string& model, const std::string& inputs, int tokens = 8,
                      const char* node = "TextGenerate") {
    return run_on(options_for({"cpu:0"}), flow(model, node, inputs, tokens));
  }
  std::string wanted(const char* name) const { return expected.at(name).bytes; }
  // A literal of a text.
  static std::string quoted(const std::string& text) {
    std::string all = "\"";
    for (const char c : text) all += c == '\n' ? "\\n" : c == '"' ? "\\\"" : std::string(1, c);
    return all + "\"";
  }
  static std::string with(const char* one, const char* other) {
    return std::string(one) + ", " + other;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(gemma4_pictures, Gemma4Pictures)

BOOST_AUTO_TEST_CASE(texts_of_pictures_equal_those_of_transformers) {
  BOOST_TEST(written("told", with(kWords, kFox)) == wanted("told.image"));
  BOOST_TEST(written("told", with(kWords, kBoth)) == wanted("told.two"));
  BOOST_TEST(said.empty());
}

BOOST_AUTO_TEST_CASE(a_model_without_a_tower_sees_pixels) {
  BOOST_TEST(written("dense", with(kWords, kFox)) == wanted("dense.image"));
}

BOOST_AUTO_TEST_CASE(a_video_is_shown_by_the_second_with_the_time) {
  BOOST_TEST(written("told", with(kWords, kVideo)) == wanted("told.video"));
  BOOST_TEST(said.empty());
  // As in ComfyUI it takes the place of pictures.
  BOOST_TEST(written("told", with(kWords, kVideo) + ", " + kFox) == wanted("told.video"));
  BOOST_TEST_REQUIRE(said.size() == 1u);
  BOOST_TEST(said[0].find("image is left out") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_prompt_may_say_itself_where_pictures_stand) {
  const std::string whole = wanted("told.two.prompt"), off = R"("use_default_template": false, )";
  BOOST_TEST(written("told", off + R"("prompt": )" + quoted(whole) + ", " + kBoth) ==
             wanted("told.two"));
  // Behind "<bos>", which is added, one that begins with a turn is in no template.
  BOOST_TEST(written("told", R"("prompt": )" + quoted(whole.substr(5)) + ", " + kBoth) ==
             wanted("told.two"));
  BOOST_TEST(said.empty());
  const std::string none = R"("prompt": "a red fox", )";
  const std::string text = written("told", off + none + kFox, 2);
  BOOST_TEST_REQUIRE(said.size() == 1u);
  BOOST_TEST(said[0].find("1 of 1 pictures") != std::string::npos);
  BOOST_TEST(text == written("told", off + R"("prompt": "a red fox")", 2));
}

BOOST_AUTO_TEST_CASE(a_prompt_is_written_anew_for_the_first_picture) {
  const auto asked = heddle::encoders::ltx2_chat_prompt("a red fox", 1, true);
  const std::string whole = "<bos><|turn>system\n" + asked.system +
                            "<turn|>\n<|turn>user\n<|image><|image|><image|>\n\n" + asked.text +
                            "<turn|>\n<|turn>model\n<|channel>final\n";
  const std::string anew = written("told", with(kWords, kBoth), 4, "TextGenerateLTX2Prompt");
  BOOST_TEST(anew ==
             written("told",
                     R"("use_default_template": false, "prompt": )" + quoted(whole) + ", " + kFox,
                     4));
  BOOST_TEST(anew != written("told", kWords, 4, "TextGenerateLTX2Prompt"));
  written("told", with(kWords, kVideo), 1, "TextGenerateLTX2Prompt");
  BOOST_TEST_REQUIRE(said.size() == 1u);
  BOOST_TEST(said[0].find("video is left out") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(divided_over_devices_and_with_little_memory_it_writes_the_same) {
  const std::string inputs = with(kWords, kVideo), image = with(kWords, kFox);
  const char* const hints = R"(, "parallel": "layers", "device": "fake:0,fake:1")";
  const std::string alone = written("told", inputs, 3);
  BOOST_TEST(run_on(options_for({"fake:0", "fake:1"}),
                    flow("told", "TextGenerate", inputs, 3, hints)) == alone);
  constexpr std::uint64_t kLittle = 7 << 20;
  BOOST_TEST(run_on(options_for({"fake:0"}, kLittle), flow("told", "TextGenerate", inputs, 3)) ==
             alone);
}

BOOST_AUTO_TEST_SUITE_END()
