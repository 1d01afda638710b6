// The text encoder of LTX 2.5: Gemma 4 and the projection of its layers out of one file, which has
// its vocabulary, too, over weights that follow from their names, against transformers and
// diffusers (../goldens/make_ltx25_text_goldens.py).
#include "plugins/encoders/ltx2_prompts.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;

namespace {

struct Ltx25Text : PlacedFixture {
  TensorFile expected{tests_folder() / "plugins/goldens/ltx25_text/expected.safetensors"};
  static constexpr const char* kFox = "a photo of a red fox in the snow";

  Ltx25Text() {
    add_text("text", seeded_model("text", false, "ltx25_text"));
    add_text("told", seeded_model("told", false, "ltx25_text"));
  }

  void add_text(const std::string& name, std::vector<FileTensor> tensors) const {
    const std::string bytes =
        read_text(tests_folder() / "plugins/goldens/ltx25_text/tokenizer.json");
    tensors.push_back({"tokenizer_json", "U8", {std::int64_t(bytes.size())}, bytes});
    write_safetensors(folder / "models/text_encoders" / (name + ".safetensors"), tensors);
  }
  static std::string loader(const std::string& name) {
    return R"({"class_type": "CLIPLoader", "inputs": {"clip_name": ")" + name +
           R"(.safetensors", "type": "ltxv"}})";
  }
  std::vector<float> encode(const std::string& load, const std::string& text) {
    return run_whole(R"({"clip": )" + load +
                         R"(, "one": {"class_type": "CLIPTextEncode", "inputs": {"text": ")" +
                         text + R"(", "clip": ["clip", 0]}},
      "first": {"class_type": "test.first", "inputs": {"list": ["one", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["first", 0]}}})",
                     {"first.value"})
        .floats("first.value", "cross_attn");
  }
  void compare(const std::string& load, const std::string& text, const std::string& golden) {
    const double error = relative_error(encode(load, text), expected.floats(golden));
    BOOST_TEST(error < kTolerance, golden << ": relative error " << error);
    BOOST_TEST(warnings.empty());
  }
  std::string written(const std::string& file, const char* node, const std::string& inputs,
                      int tokens = 12) {
    return run_whole(R"({"clip": )" + loader(file) + R"(,
      "words": {"class_type": "PrimitiveString", "inputs": {"value": "You are a poet."}},
      "written": {"class_type": ")" +
                         node + R"(", "inputs": {"clip": ["clip", 0], "max_length": )" +
                         std::to_string(tokens) + R"(, "sampling_mode": "off", )" + inputs + R"(}},
      "look": {"class_type": "test.look", "inputs": {"value": ["written", 0]}}})",
                     {"written.generated_text"})
        .text("written.generated_text");
  }
  static void says(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(ltx25_text, Ltx25Text)

BOOST_AUTO_TEST_CASE(one_file_has_the_encoder_and_the_projection_of_its_layers) {
  compare(loader("text"), kFox, "one.states");
  compare(loader("text"), "", "empty.states");
}

// A checkpoint beside it is not read.
BOOST_AUTO_TEST_CASE(the_loader_of_two_files_takes_the_same_file) {
  std::filesystem::create_directories(folder / "models/checkpoints");
  write_safetensors(folder / "models/checkpoints/other.safetensors",
                    {seeded_tensor("patchify_proj.weight", {4, 4})});
  compare(R"({"class_type": "LTXAVTextEncoderLoader", "inputs": {"text_encoder": "text.safetensors",
      "ckpt_name": "other.safetensors", "device": "default"}})",
          kFox, "one.states");
}

BOOST_AUTO_TEST_CASE(gemma_4_writes_the_likeliest_tokens_in_its_own_chat_template) {
  const std::string inputs = R"("prompt": "a fox", "system_prompt": ["words", 0])";
  BOOST_TEST(written("text", "TextGenerate", inputs) == expected.at("written").bytes);
  BOOST_TEST(written("told", "TextGenerate", inputs) == expected.at("told.written").bytes);
}

BOOST_AUTO_TEST_CASE(a_prompt_is_written_anew_by_a_system_prompt_of_the_node) {
  const heddle::encoders::ChatPrompt asked = heddle::encoders::ltx2_chat_prompt("a fox", 0, true);
  const std::string whole = "<bos><|turn>system\n" + asked.system + "<turn|>\n<|turn>user\n" +
                            asked.text + "<turn|>\n<|turn>model\n<|channel>final\n";
  std::string quoted;
  for (const char c : whole) quoted += c == '\n' ? "\\n" : std::string(1, c);
  const std::string anew = written("told", "TextGenerateLTX2Prompt", R"("prompt": "a fox")", 6);
  BOOST_TEST(anew == written("told", "TextGenerate",
                             R"("use_default_template": false, "prompt": ")" + quoted + "\"", 6));
  BOOST_TEST(anew != "a fox");
}

// Layers see keys and values of others, which may lie on another device.
BOOST_AUTO_TEST_CASE(divided_over_devices_and_with_little_memory_it_makes_the_same) {
  constexpr std::uint64_t kLittle = 360 << 10, kLittleToWrite = 530 << 10;
  const char* const hints = R"(, "parallel": "layers", "device": "fake:0,fake:1")";
  const auto run = [&](heddle::EngineOptions options, const std::string& file,
                       const std::string& nodes, const std::string& output, auto&& read) {
    heddle::Engine engine(std::move(options));
    return read(
        engine
            .start(engine.parse(R"({"clip": )" + loader(file) + ", " + nodes + "}"), {{}, {output}})
            .wait());
  };
  const auto encoded = [&](heddle::EngineOptions options, const std::string& more) {
    const std::string nodes =
        R"("one": {"class_type": "CLIPTextEncode", "inputs": {"text": ")" + std::string(kFox) +
        R"(", "clip": ["clip", 0]})" + more +
        R"(}, "first": {"class_type": "test.first", "inputs": {"list": ["one", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["first", 0]}})";
    return run(std::move(options), "text", nodes, "first.value", [](const heddle::Results& made) {
      return made.floats("first.value", "cross_attn");
    });
  };
  const std::vector<float> alone = encoded(options_for({"cpu:0"}), "");
  BOOST_TEST(are_equal(alone, encoded(options_for({"fake:0", "fake:1"}), hints)), "layers");
  BOOST_TEST(are_equal(alone, encoded(options_for({"fake:0"}, kLittle), "")), "little memory");
  const auto told = [&](heddle::EngineOptions options, const std::string& more) {
    const std::string nodes =
        R"("out": {"class_type": "TextGenerate", "inputs": {"clip": ["clip", 0], "prompt": "a fox",
      "max_length": 8, "sampling_mode": "off"})" +
        more + R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}})";
    return run(std::move(options), "told", nodes, "out.generated_text",
               [](const heddle::Results& made) { return made.text("out.generated_text"); });
  };
  const std::string text = told(options_for({"cpu:0"}), "");
  BOOST_TEST(text != "");
  BOOST_TEST(told(options_for({"fake:0", "fake:1"}), hints) == text, "layers");
  BOOST_TEST(told(options_for({"fake:0"}, kLittleToWrite), "") == text, "little memory");
}

BOOST_AUTO_TEST_CASE(what_a_file_lacks_is_said) {
  says(engine_refusal([&] { encode(loader("told"), kFox); }),
       {"told.safetensors", "projection", "gemma4-12b-with-proj"});
  says(engine_refusal([&] {
         written("told", "TextGenerate", R"("prompt": "a fox", "image": ["picture", 0]}},
      "picture": {"class_type": "EmptyImage", "inputs": {"width": 32, "height": 32, "batch_size": 1, "color": 0)");
       }),
       {"told.safetensors", "vision_model", "picture", "gemma4_e2b_it_int8_convrot"});
}

BOOST_AUTO_TEST_SUITE_END()
