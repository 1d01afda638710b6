// TextGenerate with Qwen3.5, against the texts that transformers generates with a tiny model whose
// weights follow from their names (../goldens/make_qwen35_goldens.py).
#include <atomic>
#include <cstring>
#include <thread>

#include "engine/base/text.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/qwen35_model.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

namespace fs = std::filesystem;

struct Qwen35Text : NodeFixture {
  const FakeControl control;
  const fs::path goldens35 = tests_folder() / "plugins/goldens/qwen35";
  const heddle::engine::Json expected =
      heddle::engine::parse_json(read_text(goldens35 / "expected.json"), "expected.json");
  static constexpr const char* kOutput = "written.generated_text";
  static constexpr const char* kPrompt =
      R"("a (red fox:1.2) in the snow, cafe\u0301 \u0915\u093f 2\u00bd 12")";
  static constexpr std::uint64_t kLittle = 1400 << 10;  // bytes, which do not hold all weights

  Qwen35Text() {
    add(qwen35_model("small"));
    fs::create_directories(folder / "models/tokenizers/qwen3.5");
    fs::copy_file(goldens35 / "tokenizer.json",
                  folder / "models/tokenizers/qwen3.5/tokenizer.json");
    fs::create_directories(folder / "input");
    fs::copy_file(tests_folder() / "plugins/goldens/qwen21_pictures/one.png",
                  folder / "input/one.png");
  }
  void add(const std::vector<FileTensor>& tensors) const {
    write_safetensors(folder / "models/text_encoders/qwen3.5_9b.safetensors", tensors);
  }
  std::string wanted(const char* name) const { return expected.find(name)->as_string(); }
  heddle::EngineOptions seeing() const {
    heddle::EngineOptions options = engine_options();
    options.compute[test_device_kind()] = "f32";
    options.model_dirs = {folder / "models"};
    options.input_dir = folder / "input";
    options.output_dir = folder / "out2";
    return options;
  }
  static std::string loader(const std::string& type) {
    return cat(R"("clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": )",
               R"("qwen3.5_9b.safetensors", "type": ")", type, R"(", "device": "default"}}, )");
  }
  // more: inputs of TextGenerate besides; nodes: of the workflow; hints: of TextGenerate.
  static std::string flow(int tokens, const std::string& more = "", const std::string& nodes = "",
                          const std::string& prompt = kPrompt, const std::string& clip = "clip",
                          const std::string& type = "stable_diffusion",
                          const std::string& hints = "") {
    return cat("{", loader(type), nodes,
               R"("written": {"class_type": "TextGenerate", "inputs": {"clip": [")", clip,
               R"(", 0], "prompt": )", prompt, R"(, "max_length": )", tokens,
               R"(, "sampling_mode": "off")", more, "}", hints,
               R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["written", 0]}}})");
  }
  std::string write(heddle::Engine& on, const std::string& flow) const {
    return on.start(on.parse(flow), {{}, {kOutput}}).wait().text(kOutput);
  }
  static void says(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(qwen35_text, Qwen35Text)

BOOST_AUTO_TEST_CASE(the_likeliest_tokens_are_those_of_transformers) {
  heddle::Engine made(seeing());
  // Over the place at which its buffers and sessions are made anew.
  BOOST_TEST(write(made, flow(40)) == wanted("plain"));
  BOOST_TEST(write(made, flow(10, R"(, "use_default_template": false)")) == wanted("raw"));
  const std::string words =
      R"("words": {"class_type": "PrimitiveString", "inputs": {"value": "Be short."}}, )";
  BOOST_TEST(write(made, flow(10, R"(, "thinking": true, "system_prompt": ["words", 0])", words)) ==
             wanted("thinking"));
}

BOOST_AUTO_TEST_CASE(a_picture_is_seen_by_its_vision_tower) {
  heddle::Engine made(seeing());
  const std::string picture =
      R"("picture": {"class_type": "LoadImage", "inputs": {"image": "one.png"}}, )";
  const std::string asked = flow(10, R"(, "image": ["picture", 0])", picture, R"("what is in it?")",
                                 "clip", "qwen_image");
  BOOST_TEST(write(made, asked) == wanted("picture"));
  std::vector<FileTensor> blind = qwen35_model("small");
  std::erase_if(blind, [](const FileTensor& tensor) {
    return tensor.name.find("visual.") != std::string::npos;
  });
  add(blind);
  heddle::Engine anew(seeing());
  says(engine_refusal([&] { write(anew, asked); }), {"vision tower", "qwen3.5_9b"});
}

BOOST_AUTO_TEST_CASE(it_is_stopped_between_all_tokens_and_goes_on_to_the_same_text) {
  heddle::EngineOptions options = seeing();
  options.cache_bytes = 1;
  heddle::Engine forgetful(std::move(options));
  const std::string whole = write(forgetful, flow(6));
  std::atomic<heddle::Run*> under_way{nullptr};
  const auto observe = [&](const heddle::Event& event) {
    if (event.node != "written" || event.kind != heddle::Event::Kind::node_progress) return;
    while (under_way == nullptr) std::this_thread::yield();
    under_way.load()->pause_and_release();
    under_way.load()->resume();
  };
  heddle::Run run = forgetful.start(forgetful.parse(flow(6)), {observe, {kOutput}});
  under_way = &run;
  BOOST_TEST(run.wait().text(kOutput) == whole);
}

BOOST_AUTO_TEST_CASE(wherever_the_encoder_is_the_text_is_the_same) {
  const auto fakes = [&](std::vector<std::string> devices, std::uint64_t budget = 0) {
    heddle::EngineOptions options = seeing();
    options.plugin_dirs.push_back(kFakePlugin);
    if (budget > 0) options.budgets = {{devices.front(), heddle::MemorySize{budget}}};
    options.devices = std::move(devices);
    options.compute = {{"fake", "f32"}};
    options.reference_kernels = true;
    return options;
  };
  const auto raw = [](const std::string& hints, const std::string& nodes = "",
                      const std::string& clip = "clip") {
    return flow(10, R"(, "use_default_template": false)", nodes, kPrompt, clip, "lumina2", hints);
  };
  const std::string there = R"("there": {"class_type": "SelectCLIPDevice", "inputs": )"
                            R"({"clip": ["clip", 0], "device": "fake:1"}}, )";
  heddle::Engine two(fakes({"fake:0", "fake:1"}));
  BOOST_TEST(write(two, raw("", there, "there")) == wanted("raw"));
  BOOST_TEST(write(two, raw(R"(, "parallel": "layers", "device": "fake:0,fake:1")")) ==
             wanted("raw"));
  heddle::Engine little(fakes({"fake:0"}, kLittle));
  BOOST_TEST(write(little, raw("")) == wanted("raw"));
}

BOOST_AUTO_TEST_CASE(plans_know_what_runs_ask_of_the_models) {
  heddle::Engine::Data told(seeing());
  const std::string picture =
      R"("picture": {"class_type": "LoadImage", "inputs": {"image": "one.png"}}, )";
  // With a picture, over the place at which sessions are made anew.
  check_inference(told, flow(50, R"(, "image": ["picture", 0])", picture));
}

BOOST_AUTO_TEST_CASE(a_lora_of_layers_without_an_attention_changes_what_it_writes) {
  std::vector<FileTensor> merged = qwen35_model("small"), differences;
  for (const char* module : {"layers.0.linear_attn.in_proj_b", "layers.1.linear_attn.out_proj",
                             "layers.2.linear_attn.in_proj_qkv", "layers.3.self_attn.q_proj"})
    for (FileTensor& tensor : merged) {
      if (tensor.name != cat("model.language_model.", module, ".weight")) continue;
      FileTensor difference = seeded_tensor(cat(module, ".changed"), tensor.shape);
      std::vector<float> values(tensor.bytes.size() / sizeof(float)), more(values.size());
      std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
      std::memcpy(more.data(), difference.bytes.data(), difference.bytes.size());
      for (std::size_t k = 0; k < values.size(); ++k) values[k] += more[k];
      tensor.bytes = bytes_of_floats(values);
      difference.name = cat("text_encoder.model.", module, ".diff");
      differences.push_back(std::move(difference));
    }
  BOOST_TEST_REQUIRE(differences.size() == 4u);
  write_safetensors(folder / "models/loras/style.safetensors", differences);
  const std::string lora =
      R"("styled": {"class_type": "LoadLoraTextEncoder", "inputs": {"clip": ["clip", 0], )"
      R"("loras.0.lora_name": "style.safetensors", "loras.0.strength": 1.0, )"
      R"("loras.0.enabled": true}}, )";
  heddle::Engine made(seeing());
  const std::string styled = write(made, flow(8, "", lora, kPrompt, "styled"));
  BOOST_TEST(styled != write(made, flow(8)));
  add(merged);
  heddle::Engine anew(seeing());
  BOOST_TEST(styled == write(anew, flow(8)));
}

BOOST_AUTO_TEST_CASE(what_it_lacks_is_said) {
  heddle::Engine made(seeing());
  says(engine_refusal([&] { write(made, flow(4, "", "", R"("a")", "clip", "moss_image")); }),
       {"qwen3.5", "MOSS-Image", "not supported"});
  fs::remove_all(folder / "models/tokenizers");
  heddle::Engine without(seeing());
  says(engine_refusal([&] { write(without, flow(4)); }),
       {"qwen3.5_9b.safetensors", "tokenizer", "320", "tokenizers/qwen3.5", "Qwen/Qwen3.5-9B"});
  fs::create_directories(folder / "models/tokenizers/qwen3.5");
  fs::copy_file(goldens35 / "tokenizer.json", folder / "models/tokenizers/qwen3.5/tokenizer.json");
  std::vector<FileTensor> cut = qwen35_model("small");
  std::erase_if(cut, [](const FileTensor& tensor) {
    return tensor.name == "model.language_model.layers.2.linear_attn.dt_bias";
  });
  add(cut);
  heddle::Engine lacking(seeing());
  says(engine_refusal([&] { write(lacking, flow(4)); }),
       {"layers.2.linear_attn.dt_bias", "missing"});
}

BOOST_AUTO_TEST_SUITE_END()
