// Texts that Gemma 3 writes of pictures, over weights that follow from their names, against what
// transformers writes, the likeliest token each time (../goldens/make_gemma3_picture_goldens.py).
#include "plugins/encoders/ltx2_prompts.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;

namespace {

struct Gemma3Pictures : PlacedFixture {
  const std::filesystem::path goldens = tests_folder() / "plugins/goldens";
  TensorFile expected{goldens / "gemma3_pictures/expected.safetensors"};

  Gemma3Pictures() {
    input_dir = folder / "input";
    std::filesystem::create_directories(input_dir);
    std::filesystem::copy_file(goldens / "gemma4_pictures/fox.png", input_dir / "fox.png");
    add_text("seeing", {});
    add_text("blind", {"vision_model.", "multi_modal_projector."});
    add_text("bare", {"multi_modal_projector."});
  }
  // The model without the tensors whose names begin so.
  void add_text(const std::string& name, const std::vector<std::string>& without) const {
    const std::string bytes =
        read_text(tests_folder() / "plugins/encoders/tokenizer/data/bpe.model");
    std::vector<FileTensor> tensors = seeded_model("seeing", false, "gemma3_pictures");
    for (const std::string& part : without)
      std::erase_if(tensors, [&](const FileTensor& t) { return t.name.starts_with(part); });
    tensors.push_back({"spiece_model", "U8", {std::int64_t(bytes.size())}, bytes});
    add("text_encoders/" + name, tensors);
  }

  // The picture, turned, with its mirror image, and as a video.
  static std::string flow(const std::string& model, const char* node, const std::string& inputs,
                          int tokens, const std::string& hints = "") {
    return heddle::engine::cat(R"({"clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": ")",
                               model,
                               R"(.safetensors", "type": "ltxv"}},
      "fox": {"class_type": "LoadImage", "inputs": {"image": "fox.png"}},
      "turned": {"class_type": "ImageRotate", "inputs": {"image": ["fox", 0], "rotation": "90 degrees"}},
      "mirrored": {"class_type": "ImageFlip", "inputs": {"image": ["fox", 0], "flip_method": "y-axis: horizontally"}},
      "both": {"class_type": "ImageBatch", "inputs": {"image1": ["fox", 0], "image2": ["mirrored", 0]}},
      "written": {"class_type": ")",
                               node, R"(", "inputs": {"clip": ["clip", 0], "max_length": )", tokens,
                               R"(, "sampling_mode": "off", )", inputs, "}", hints, R"(},
      "look": {"class_type": "test.look", "inputs": {"value": ["written", 0]}}})");
  }
  static std::string shown(const char* picture, const std::string& prompt = "a red fox") {
    std::string text;
    for (const char c : prompt) text += c == '\n' ? "\\n" : std::string(1, c);
    return heddle::engine::cat(R"("prompt": ")", text, R"(", "image": [")", picture, R"(", 0])");
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
  std::string written(const std::string& inputs, int tokens = 8, const char* node = "TextGenerate",
                      const char* model = "seeing") {
    return run_on(options_for({"cpu:0"}), flow(model, node, inputs, tokens));
  }
  std::string wanted(const char* name) const { return expected.at(name).bytes; }
  void refuses(const std::string& inputs, std::initializer_list<const char*> words,
               const char* model) {
    const std::string text = engine_refusal([&] { written(inputs, 2, "TextGenerate", model); });
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

constexpr const char* kRaw = R"("use_default_template": false, )";

}  // namespace

BOOST_FIXTURE_TEST_SUITE(gemma3_pictures, Gemma3Pictures)

BOOST_AUTO_TEST_CASE(texts_of_pictures_equal_those_of_transformers) {
  BOOST_TEST(written(shown("fox", "two trees")) == wanted("image"));
  BOOST_TEST(written(shown("turned")) == wanted("tall"));
  BOOST_TEST(written(shown("both")) == wanted("two"));
  BOOST_TEST(said.empty());
}

BOOST_AUTO_TEST_CASE(a_prompt_may_say_itself_where_pictures_stand) {
  const std::string whole = wanted("told.prompt");
  BOOST_TEST(written(kRaw + shown("fox", whole)) == wanted("told"));
  // One that begins with a turn is in no template.
  BOOST_TEST(written(shown("fox", whole)) == wanted("told"));
  BOOST_TEST(said.empty());
  written(kRaw + shown("fox"), 1);
  BOOST_TEST_REQUIRE(said.size() == 1u);
  BOOST_TEST(said[0].find("1 of 1 pictures") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_prompt_is_written_anew_for_a_picture) {
  const auto asked = heddle::encoders::ltx2_chat_prompt("a red fox", 1, false);
  const std::string whole =
      "<start_of_turn>system\n" + asked.system +
      "<end_of_turn>\n<start_of_turn>user\n\n<image_soft_token>\n\nUser Raw Input Prompt: a red "
      "fox.<end_of_turn>\n<start_of_turn>model\n";
  const std::string anew = written(shown("fox"), 4, "TextGenerateLTX2Prompt");
  BOOST_TEST(anew == written(kRaw + shown("fox", whole), 4));
  BOOST_TEST(anew != written(R"("prompt": "a red fox")", 4, "TextGenerateLTX2Prompt"));
}

BOOST_AUTO_TEST_CASE(a_video_is_left_out) {
  const std::string text = written(shown("fox", "two trees") + R"(, "video": ["both", 0])");
  BOOST_TEST(text == wanted("image"));
  BOOST_TEST_REQUIRE(said.size() == 1u);
  BOOST_TEST(said[0].find("video is left out") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_file_without_a_tower_writes_texts_and_refuses_pictures) {
  const std::string words = R"("prompt": "a red fox")";
  const std::string alone = written(words);
  for (const char* model : {"blind", "bare"}) {
    BOOST_TEST(written(words, 8, "TextGenerate", model) == alone, model);
    refuses(shown("fox"), {model, "'vision_model.*' and 'multi_modal_projector.*'"}, model);
  }
}

BOOST_AUTO_TEST_CASE(divided_over_devices_and_with_little_memory_it_writes_the_same) {
  const char* const hints = R"(, "parallel": "layers", "device": "fake:0,fake:1")";
  const std::string alone = written(shown("both"), 3);
  BOOST_TEST(run_on(options_for({"fake:0", "fake:1"}),
                    flow("seeing", "TextGenerate", shown("both"), 3, hints)) == alone);
  constexpr std::uint64_t kLittle = 7900 << 10;
  BOOST_TEST(run_on(options_for({"fake:0"}, kLittle),
                    flow("seeing", "TextGenerate", shown("both"), 3)) == alone);
}

BOOST_AUTO_TEST_SUITE_END()
