// The text encoder of LTX 2: Gemma 3 and the projection of its layers out of two files, over
// weights that follow from their names, against transformers and diffusers
// (../goldens/make_ltx2_text_goldens.py).
#include "plugins/encoders/ltx2_prompts.h"
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/seeded_weights.h"

using namespace heddle::test;

namespace {

struct Ltx2Text : NodeFixture {
  static constexpr const char* kText = "gemma_3_12B_it.safetensors";
  TensorFile expected{tests_folder() / "plugins/goldens/ltx2_text/expected.safetensors"};

  Ltx2Text() {
    std::filesystem::create_directories(folder / "models/checkpoints");
    add_text(seeded_model("text", false, "ltx2_text"));
    for (const char* name : {"projected", "projected23"})
      write_safetensors(checkpoint(name), seeded_model(name, false, "ltx2_text"));
  }

  std::filesystem::path checkpoint(const std::string& name) const {
    return folder / "models/checkpoints" / (name + ".safetensors");
  }
  void add_text(std::vector<FileTensor> tensors) const {
    const std::string bytes =
        read_text(tests_folder() / "plugins/encoders/tokenizer/data/bpe.model");
    tensors.push_back({"spiece_model", "U8", {std::int64_t(bytes.size())}, bytes});
    write_safetensors(folder / "models/text_encoders" / kText, tensors);
  }
  static std::string loader(const std::string& name) {
    return R"({"class_type": "LTXAVTextEncoderLoader", "inputs": {"text_encoder": ")" +
           std::string(kText) + R"(", "ckpt_name": ")" + name +
           R"(.safetensors", "device": "default"}})";
  }
  heddle::Results encode(const std::string& load, const std::string& text,
                         const std::string& clip = "clip") {
    return run_whole(R"({"clip": )" + load +
                         R"(, "one": {"class_type": "CLIPTextEncode", "inputs": {"text": ")" +
                         text + R"(", "clip": [")" + clip + R"(", 0]}},
      "first": {"class_type": "test.first", "inputs": {"list": ["one", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["first", 0]}}})",
                     {"first.value"});
  }
  void compare(const std::string& load, const std::string& text, const std::string& golden) {
    const std::vector<float> states = encode(load, text).floats("first.value", "cross_attn");
    const double error = relative_error(states, expected.floats(golden));
    BOOST_TEST(error < kTolerance, golden << ": relative error " << error);
    BOOST_TEST(warnings.empty());
  }
  std::string refusal(const std::string& load) {
    return engine_refusal([&] { encode(load, "a fox"); });
  }
  static void says(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

constexpr const char* kFox = "a photo of a red fox in the snow";

}  // namespace

BOOST_FIXTURE_TEST_SUITE(ltx2_text, Ltx2Text)

BOOST_AUTO_TEST_CASE(all_layers_are_normalised_and_projected_as_diffusers_does) {
  compare(loader("projected"), kFox, "one.states");
  compare(loader("projected"), "", "empty.states");
}

BOOST_AUTO_TEST_CASE(two_projections_give_what_is_for_video_and_for_sound) {
  compare(loader("projected23"), kFox, "one23.states");
  compare(loader("projected23"), "", "empty23.states");
}

BOOST_AUTO_TEST_CASE(a_projection_in_a_file_by_itself_is_loaded_in_either_order) {
  std::filesystem::copy_file(checkpoint("projected"),
                             folder / "models/text_encoders/projection.safetensors");
  for (const auto& [one, two] :
       {std::pair(kText, "projection.safetensors"), std::pair("projection.safetensors", kText)})
    compare(std::string(R"({"class_type": "DualCLIPLoader", "inputs": {"clip_name1": ")") + one +
                R"(", "clip_name2": ")" + two + R"(", "type": "ltxv"}})",
            kFox, "one.states");
}

// By the names of diffusers, and by those of ComfyUI, with the encoder's and without.
BOOST_AUTO_TEST_CASE(a_lora_of_the_text_encoder_has_names_of_several_kinds) {
  std::filesystem::create_directories(folder / "models/loras");
  const auto states = [&](const std::string& prefix) {
    const std::string module = "model.layers.0.self_attn.o_proj.";
    std::vector<FileTensor> tensors;
    for (const auto& [name, shape] :
         {std::pair("lora_A.weight", std::vector<std::int64_t>{2, 512}),
          std::pair("lora_B.weight", std::vector<std::int64_t>{24, 2})}) {
      tensors.push_back(seeded_tensor(module + name, shape));
      tensors.back().name = prefix + tensors.back().name;
    }
    write_safetensors(folder / "models/loras/plain.safetensors", tensors);
    return encode(
               loader("projected") +
                   R"(, "clip0": {"class_type": "LoadLoraTextEncoder", "inputs": {"clip": ["clip", 0],
        "loras.0.lora_name": "plain.safetensors", "loras.0.strength": 1.0}})",
               kFox, "clip0")
        .floats("first.value", "cross_attn");
  };
  const std::vector<float> wanted = states("text_encoder.");
  BOOST_TEST(relative_error(wanted, expected.floats("one.states")) > 100 * kTolerance);
  for (const char* prefix : {"text_encoders.transformer.", "text_encoders.gemma3_12b.transformer."})
    BOOST_TEST((states(prefix) == wanted), prefix);
}

BOOST_AUTO_TEST_CASE(files_that_do_not_belong_together_are_refused) {
  says(
      refusal(
          R"({"class_type": "CLIPLoader", "inputs": {"clip_name": "gemma_3_12B_it.safetensors", "type": "ltxv"}})"),
      {kText, "in another file", "LTXAVTextEncoderLoader"});
  write_safetensors(checkpoint("none"), {seeded_tensor("patchify_proj.weight", {4, 4})});
  says(refusal(loader("none")), {"none.safetensors", "text_projection"});
  std::vector<FileTensor> fewer = seeded_model("text", false, "ltx2_text");
  std::erase_if(fewer, [](const FileTensor& tensor) {
    return tensor.name.find("layers.12.") != std::string::npos;
  });
  add_text(fewer);
  says(refusal(loader("projected")), {"projected.safetensors", "336", "13"});
}

BOOST_AUTO_TEST_CASE(a_prompt_is_written_anew_by_a_system_prompt_of_the_node) {
  const auto written = [&](const char* node, const std::string& inputs, int tokens) {
    return run_whole(
               R"({"clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "gemma_3_12B_it.safetensors", "type": "ltxv"}},
      "written": {"class_type": ")" +
                   std::string(node) + R"(", "inputs": {"clip": ["clip", 0], "max_length": )" +
                   std::to_string(tokens) + R"(, "sampling_mode": "off", )" + inputs + R"(}},
      "look": {"class_type": "test.look", "inputs": {"value": ["written", 0]}}})",
               {"written.generated_text"})
        .text("written.generated_text");
  };
  const heddle::encoders::ChatPrompt asked = heddle::encoders::ltx2_chat_prompt("a fox", 0, false);
  const auto quoted = [](const std::string& text) {
    std::string out = "\"";
    for (const char c : text) out += c == '\n' ? "\\n" : std::string(1, c);
    return out + "\"";
  };
  const std::string anew = written("TextGenerateLTX2Prompt", R"("prompt": "a fox")", 6);
  BOOST_TEST(anew == written("TextGenerate",
                             R"("prompt": )" + quoted(asked.text) + R"(, "system_prompt": )" +
                                 quoted(asked.system),
                             6));
  BOOST_TEST(anew != "a fox");
}

BOOST_AUTO_TEST_CASE(gemma_3_writes_the_likeliest_tokens_in_its_own_chat_template) {
  const std::string written =
      run_whole(
          R"({"clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "gemma_3_12B_it.safetensors", "type": "ltxv"}},
      "words": {"class_type": "PrimitiveString", "inputs": {"value": "You are a poet."}},
      "written": {"class_type": "TextGenerate", "inputs": {"clip": ["clip", 0], "prompt": "a fox", "max_length": 12,
        "sampling_mode": "off", "system_prompt": ["words", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["written", 0]}}})",
          {"written.generated_text"})
          .text("written.generated_text");
  BOOST_TEST(written == expected.at("written").bytes);
}

BOOST_AUTO_TEST_SUITE_END()
