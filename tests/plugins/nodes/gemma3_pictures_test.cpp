// Texts that Gemma 3 writes of pictures, over weights that follow from their names, against what
// transformers writes, the likeliest token each time (../goldens/make_gemma3_picture_goldens.py).
#include "plugins/encoders/ltx2_prompts.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;

namespace {

struct Gemma3Pictures : PlacedFixture {
  const std::filesystem::path goldens = tests_folder() / "plugins/goldens";
  TensorFile expected{goldens / "gemma3_pictures/expected.safetensors"};
  static constexpr const char* kFox = R"("prompt": "a red fox", "image": ["fox", 0])";
  static constexpr const char* kWords = R"("prompt": "a red fox")";

  Gemma3Pictures() {
    input_dir = folder / "input";
    std::filesystem::create_directories(input_dir);
    std::filesystem::copy_file(goldens / "gemma4_pictures/fox.png", input_dir / "fox.png");
    std::vector<FileTensor> tensors = seeded_model("seeing", false, "gemma3_pictures");
    const std::string bytes =
        read_text(tests_folder() / "plugins/encoders/tokenizer/data/bpe.model");
    tensors.push_back({"spiece_model", "U8", {std::int64_t(bytes.size())}, bytes});
    add("text_encoders/seeing", tensors);
    std::erase_if(tensors, [](const FileTensor& t) { return t.name.starts_with("vision_model."); });
    add("text_encoders/blind", tensors);
    std::erase_if(tensors, [](const FileTensor& t) { return t.name.starts_with("multi_modal"); });
    add("text_encoders/text", tensors);
  }

  // The picture, upright, and with its mirror image.
  static std::string flow(const std::string& inputs, int tokens = 8, const std::string& hints = "",
                          const char* node = "TextGenerate", const char* model = "seeing") {
    return heddle::engine::cat(R"({"clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": ")",
                               model,
                               R"(.safetensors", "type": "ltxv"}},
      "fox": {"class_type": "LoadImage", "inputs": {"image": "fox.png"}},
      "tall": {"class_type": "ImageRotate", "inputs": {"image": ["fox", 0], "rotation": "90 degrees"}},
      "mirrored": {"class_type": "ImageFlip", "inputs": {"image": ["fox", 0], "flip_method": "y-axis: horizontally"}},
      "both": {"class_type": "ImageBatch", "inputs": {"image1": ["fox", 0], "image2": ["mirrored", 0]}},
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
  std::string written(const std::string& flow) { return run_on(options_for({"cpu:0"}), flow); }
  std::string wanted(const char* name) const { return expected.at(name).bytes; }
  static std::string quoted(const std::string& text) {
    std::string all = "\"";
    for (const char c : text) all += c == '\n' ? "\\n" : c == '"' ? "\\\"" : std::string(1, c);
    return all + "\"";
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(gemma3_pictures, Gemma3Pictures)

BOOST_AUTO_TEST_CASE(texts_of_pictures_equal_those_of_transformers) {
  BOOST_TEST(written(flow(kFox)) == wanted("image"));
  BOOST_TEST(written(flow(R"("prompt": "a red fox", "image": ["tall", 0])")) == wanted("tall"));
  BOOST_TEST(written(flow(R"("prompt": "a red fox", "image": ["both", 0])")) == wanted("two"));
  BOOST_TEST(said.empty());
  BOOST_TEST(written(flow(kWords)) != wanted("image"));
}

BOOST_AUTO_TEST_CASE(a_prompt_may_say_itself_where_pictures_stand) {
  const std::string told = R"("prompt": )" + quoted(wanted("told.prompt"));
  const std::string picture = R"(, "image": ["fox", 0])";
  BOOST_TEST(written(flow(told + picture)) == wanted("told"));
  BOOST_TEST(written(flow(R"("use_default_template": false, )" + told + picture)) ==
             wanted("told"));
}

BOOST_AUTO_TEST_CASE(a_prompt_is_written_anew_for_the_picture) {
  const auto asked = heddle::encoders::ltx2_chat_prompt("a red fox", 1, true);
  const std::string whole = "<start_of_turn>system\n" + asked.system +
                            "<end_of_turn>\n<start_of_turn>user\n\n<image_soft_token>\n\n" +
                            asked.text + "<end_of_turn>\n<start_of_turn>model\n";
  const std::string anew = written(flow(kFox, 4, "", "TextGenerateLTX2Prompt"));
  BOOST_TEST(anew == written(flow(R"("image": ["fox", 0], "prompt": )" + quoted(whole), 4)));
  BOOST_TEST(anew != written(flow(kWords, 4, "", "TextGenerateLTX2Prompt")));
}

BOOST_AUTO_TEST_CASE(a_video_is_left_out_with_a_warning) {
  BOOST_TEST(written(flow(R"("prompt": "a red fox", "image": ["fox", 0], "video": ["both", 0])")) ==
             wanted("image"));
  BOOST_TEST_REQUIRE(said.size() == 1u);
  BOOST_TEST(said[0].find("video is left out") != std::string::npos, said[0]);
}

BOOST_AUTO_TEST_CASE(divided_over_devices_it_writes_the_same) {
  const std::string alone = written(flow(kFox, 3));
  BOOST_TEST(run_on(options_for({"fake:0", "fake:1"}),
                    flow(kFox, 3, R"(, "parallel": "layers", "device": "fake:0,fake:1")")) ==
             alone);
}

BOOST_AUTO_TEST_CASE(a_file_that_cannot_see_is_named_before_a_picture_is_shown) {
  for (const char* model : {"blind", "text"}) {
    const std::string text =
        engine_refusal([&] { written(flow(kFox, 1, "", "TextGenerate", model)); });
    for (const char* word :
         {model, "vision_model.*", "multi_modal_projector.*", "gemma_3_12B_it.safetensors"})
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
    BOOST_TEST(!written(flow(kWords, 1, "", "TextGenerate", model)).empty(), model);
  }
}

BOOST_AUTO_TEST_SUITE_END()
