// TextGenerate with language models whose weights follow from their names, against the texts that
// transformers generates with the same ones (../goldens/make_generate_goldens.py).
#include <atomic>
#include <cstring>
#include <future>
#include <thread>

#include "engine/base/text.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/seeded_weights.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct Generate : NodeFixture {
  const FakeControl control;
  static constexpr const char* kOff = R"("sampling_mode": "off")";
  const heddle::engine::Json expected = heddle::engine::parse_json(
      read_text(tests_folder() / "plugins/goldens/generate/expected.json"), "expected.json");

  std::string wanted(const char* name) const { return expected.find(name)->as_string(); }
  // Models are made once for all cases: their tables have a row for every token of Qwen.
  static std::vector<FileTensor> with_head(std::vector<FileTensor> tensors, std::int64_t width) {
    tensors.push_back(seeded_tensor("lm_head.weight", {151936, width}));
    return tensors;
  }
  static const std::vector<FileTensor>& tied() {
    static const std::vector<FileTensor> model = seeded_model("z_image.text");
    return model;
  }
  static const std::vector<FileTensor>& untied() {
    static const std::vector<FileTensor> model = with_head(tied(), 24);
    return model;
  }
  void add(const std::vector<FileTensor>& tensors) const {
    write_safetensors(folder / "models/text_encoders/qwen_3_4b.safetensors", tensors);
  }
  void add_qwen3() const { add(untied()); }
  // prompt: of what is asked, its inputs but clip and prompt.
  static std::string flow(const std::string& inputs, const std::string& nodes = "",
                          const std::string& clip = "clip", const std::string& type = "lumina2") {
    return cat(
        R"({"clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "qwen_3_4b.safetensors", "type": ")",
        type, R"(", "device": "default"}}, )", nodes,
        R"("written": {"class_type": "TextGenerate", "inputs": {"clip": [")", clip,
        R"(", 0], "prompt": "a (red fox:1.2) in the snow", )", inputs,
        R"(}}, "look": {"class_type": "test.look", "inputs": {"value": ["written", 0]}}})");
  }
  struct Text {
    std::string text, thinking;
  };
  Text write(const std::string& flow) {
    const heddle::Results results = run_whole(flow, {"written.generated_text", "written.thinking"});
    BOOST_TEST(warnings.empty());
    return {results.text("written.generated_text"), results.text("written.thinking")};
  }
  static std::string asked(int tokens, const std::string& more = kOff) {
    return cat(R"("max_length": )", tokens, ", ", more);
  }
  static void says(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(generate, Generate)

BOOST_AUTO_TEST_CASE(the_likeliest_tokens_are_those_of_transformers) {
  add_qwen3();
  // Over the place at which its buffers and sessions are made anew.
  const Text written = write(flow(asked(50)));
  BOOST_TEST(written.text == wanted("greedy"));
  BOOST_TEST(written.thinking == "");
  BOOST_TEST(write(flow(asked(10, cat(kOff, R"(, "use_default_template": false)")))).text ==
             wanted("raw"));
  const std::string
      more = cat(kOff, R"(, "thinking": true, "system_prompt": ["words", 0])"),
      words = R"("words": {"class_type": "PrimitiveString", "inputs": {"value": "Be short."}}, )";
  BOOST_TEST(write(flow(asked(10, more), words)).text == wanted("system"));
  // Without a matrix for it the table of tokens scores them.
  add(tied());
  BOOST_TEST(write(flow(asked(4))).text == wanted("tied"));
}

BOOST_AUTO_TEST_CASE(drawn_tokens_follow_the_rules_and_the_seed) {
  add_qwen3();
  const auto drawn = [&](int tokens, const char* rules) {
    return write(flow(asked(tokens, cat(R"("sampling_mode": "on", )", rules)))).text;
  };
  BOOST_TEST(drawn(24, R"("sampling_mode.temperature": 0.8, "sampling_mode.top_k": 30,
      "sampling_mode.top_p": 0.9, "sampling_mode.min_p": 0.02, "sampling_mode.seed": 1099511627781,
      "sampling_mode.repetition_penalty": 1.3, "sampling_mode.presence_penalty": 0.5)") ==
             wanted("sampled"));
  BOOST_TEST(drawn(12, R"("sampling_mode.temperature": 1.5, "sampling_mode.top_k": 0,
      "sampling_mode.top_p": 0.3, "sampling_mode.min_p": 0.2, "sampling_mode.seed": 7,
      "sampling_mode.repetition_penalty": 1.0)") == wanted("narrow"));
}

BOOST_AUTO_TEST_CASE(pictures_are_seen_by_a_model_with_a_vision_tower) {
  add(with_head(seeded_model("text", false, "qwen21_pictures"), 32));
  std::filesystem::create_directories(folder / "input");
  std::filesystem::copy_file(tests_folder() / "plugins/goldens/qwen21_pictures/one.png",
                             folder / "input/one.png");
  const std::string picture =
      R"("picture": {"class_type": "LoadImage", "inputs": {"image": "one.png"}}, )";
  heddle::EngineOptions options = engine_options();
  options.compute[test_device_kind()] = "f32";
  options.model_dirs = {folder / "models"};
  options.input_dir = folder / "input";
  options.output_dir = folder / "out2";
  heddle::Engine seeing(std::move(options));
  const heddle::Results results =
      seeing
          .start(seeing.parse(flow(asked(10, cat(kOff, R"(, "image": ["picture", 0])")), picture,
                                   "clip", "qwen_image")),
                 {{}, {"written.generated_text"}})
          .wait();
  BOOST_TEST(results.text("written.generated_text") == wanted("pictures"));
  add_qwen3();
  says(engine_refusal([&] {
         seeing
             .start(
                 seeing.parse(flow(asked(10, cat(kOff, R"(, "image": ["picture", 0])")), picture)))
             .wait();
       }),
       {"vision tower"});
}

BOOST_AUTO_TEST_CASE(wherever_the_encoder_is_the_text_is_the_same) {
  add_qwen3();
  const auto write_on = [&](const std::string& nodes, const std::string& clip) {
    heddle::EngineOptions options = engine_options();
    options.plugin_dirs.push_back(kFakePlugin);
    options.devices = {"fake:0", "fake:1"};
    options.compute = {{"fake", "f32"}};
    options.reference_kernels = true;
    options.model_dirs = {folder / "models"};
    options.output_dir = folder / "placed";
    heddle::Engine engine(std::move(options));
    return engine
        .start(engine.parse(
                   flow(asked(10, cat(kOff, R"(, "use_default_template": false)")), nodes, clip)),
               {{}, {"written.generated_text"}})
        .wait()
        .text("written.generated_text");
  };
  BOOST_TEST(
      write_on(
          R"("there": {"class_type": "SelectCLIPDevice", "inputs": {"clip": ["clip", 0], "device": "fake:1"}}, )",
          "there") == wanted("raw"));
}

BOOST_AUTO_TEST_CASE(a_run_is_cancelled_between_two_tokens) {
  add_qwen3();
  int tokens = 0;
  std::promise<void> ten;
  const auto count = [&](const heddle::Event& event) {
    if (event.kind != heddle::Event::Kind::node_progress || event.node != "written") return;
    if (++tokens == 10) ten.set_value();
  };
  heddle::Run run = engine.start(engine.parse(flow(asked(32768))), {count, {}});
  ten.get_future().wait();
  run.cancel();
  BOOST_CHECK_EXCEPTION(run.wait(), heddle::EngineError, [](const heddle::EngineError& error) {
    return error.code() == HEDDLE_CANCELLED;
  });
  BOOST_TEST(tokens < 32768);
}

BOOST_AUTO_TEST_CASE(it_is_stopped_between_all_tokens_and_goes_on_to_the_same_text) {
  add_qwen3();
  heddle::EngineOptions options = engine_options();
  options.compute[test_device_kind()] = "f32";
  options.model_dirs = {folder / "models"};
  options.output_dir = folder / "pieces";
  options.cache_bytes = 1;
  heddle::Engine forgetful(std::move(options));
  const auto parsed = [&] {
    return forgetful.parse(flow(asked(6, R"("sampling_mode": "on", "sampling_mode.seed": 5)")));
  };
  const std::string output = "written.generated_text";
  const std::string whole = forgetful.start(parsed(), {.fetch = {output}}).wait().text(output);
  std::atomic<heddle::Run*> under_way{nullptr};
  int begun = 0, tokens = 0;
  const auto observe = [&](const heddle::Event& event) {
    if (event.node != "written") return;
    if (event.kind == heddle::Event::Kind::node_started) ++begun;
    if (event.kind != heddle::Event::Kind::node_progress) return;
    ++tokens;
    while (under_way == nullptr) std::this_thread::yield();
    under_way.load()->pause_and_release();
    under_way.load()->resume();
  };
  heddle::Run run = forgetful.start(parsed(), {observe, {output}});
  under_way = &run;
  BOOST_TEST(run.wait().text(output) == whole);
  BOOST_TEST(tokens == 6);
  BOOST_TEST(begun == 6);  // behind the last there is no boundary
}

BOOST_AUTO_TEST_CASE(a_lora_of_the_encoder_changes_what_it_writes) {
  add_qwen3();
  const std::string module = "model.layers.1.mlp.down_proj";
  FileTensor difference = seeded_tensor(module + ".changed", {24, 32});
  difference.name = "text_encoder." + module + ".diff";
  std::filesystem::create_directories(folder / "models/loras");
  write_safetensors(folder / "models/loras/style.safetensors", {difference});
  const std::string lora =
      R"("styled": {"class_type": "LoadLoraTextEncoder", "inputs": {"clip": ["clip", 0], "loras.0.lora_name": "style.safetensors", "loras.0.strength": 1.0, "loras.0.enabled": true}}, )";
  const std::string styled = write(flow(asked(6), lora, "styled")).text;
  std::vector<FileTensor> merged = untied();
  for (FileTensor& tensor : merged) {
    if (tensor.name != module + ".weight") continue;
    std::vector<float> values(tensor.bytes.size() / sizeof(float)), more(values.size());
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    std::memcpy(more.data(), difference.bytes.data(), difference.bytes.size());
    for (std::size_t k = 0; k < values.size(); ++k) values[k] += more[k];
    tensor.bytes = bytes_of_floats(values);
  }
  BOOST_TEST(styled != write(flow(asked(6))).text);
  add(merged);
  BOOST_TEST(styled == write(flow(asked(6))).text);
}

BOOST_AUTO_TEST_CASE(what_cannot_write_is_refused_with_what_could) {
  write_safetensors(folder / "models/text_encoders/t5.safetensors",
                    seeded_model("t5xxl", false, "sd3"));
  const std::string t5 =
      R"("t5": {"class_type": "CLIPLoader", "inputs": {"clip_name": "t5.safetensors", "type": "chroma", "device": "default"}}, )";
  add_qwen3();
  says(engine_refusal([&] { write(flow(asked(4), t5, "t5")); }),
       {"no language model", "CLIPLoader"});
  std::vector<FileTensor> cut = tied();
  std::erase_if(cut, [](const FileTensor& tensor) { return tensor.name == "model.norm.weight"; });
  add(cut);
  says(engine_refusal([&] { write(flow(asked(4))); }), {"'model.norm.weight'", "missing"});
}

BOOST_AUTO_TEST_SUITE_END()
