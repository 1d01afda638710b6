// Long prompts: windows go through their encoder a few at a time, and a text beyond the limit goes
// nowhere.
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/node_fixture.h"

using heddle::Engine;
using heddle::EngineError;
using heddle::test::engine_refusal;
using heddle::test::NodeFixture;

namespace {

struct PromptFixture {
  NodeFixture nodes;  // its folder of models
  std::unique_ptr<Engine> engine;

  PromptFixture() {
    // CLIP-L in a file of its own, with numbers in it.
    std::vector<heddle::test::FileTensor> tensors = nodes.clip_tensors();
    std::uint32_t state = 1;
    for (heddle::test::FileTensor& tensor : tensors) {
      tensor.dtype = "F32";
      std::vector<float> values(heddle::test::bytes_of(tensor) / sizeof(float));
      for (float& value : values) {
        state = state * 1664525u + 1013904223u;
        value = (float(state >> 8) / float(1u << 24) - 0.5f) * 0.4f;
      }
      tensor.bytes = heddle::test::bytes_of_floats(values);
    }
    heddle::test::write_safetensors(nodes.folder / "models/text_encoders/numbers.safetensors",
                                    tensors);
    std::filesystem::create_directories(nodes.folder / "models/tokenizers");
    std::filesystem::create_symlink(nodes.here() / "pipeline/tokenizer",
                                    nodes.folder / "models/tokenizers/clip_l");
    engine = std::make_unique<Engine>(options());
  }

  heddle::EngineOptions options() const {
    heddle::EngineOptions options = heddle::test::engine_options();
    options.compute[heddle::test::test_device_kind()] = "f32";
    options.model_dirs.push_back(nodes.folder / "models");
    options.output_dir = nodes.folder / "prompts";
    return options;
  }

  static std::string flow(const std::string& text, const std::string& more = "") {
    return R"({"clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "numbers.safetensors",
                 "type": "stable_diffusion"}},
               "loader": {"class_type": "DiffusersLoader", "inputs": {"model_path": "random"}},
               "text": {"class_type": "CLIPTextEncode", "inputs": {"text": )" +
           text + R"(, "clip": ["clip", 0]}},
               "flux": {"class_type": "CLIPTextEncode", "inputs": {"text": )" +
           text + R"(, "clip": ["loader", 1]}},
               "entry": {"class_type": "test.first", "inputs": {"list": ["text", 0]}}, )" +
           more + R"("look": {"class_type": "test.look", "inputs": {"value": ["entry", 0]}},
               "look too": {"class_type": "test.look", "inputs": {"value": ["flux", 0]}}})";
  }
  static std::string quoted(const std::string& text) { return "\"" + text + "\""; }

  std::vector<float> encode(const std::string& prompt) {
    return engine->start(engine->parse(flow(quoted(prompt))), {{}, {"entry.value"}})
        .wait()
        .floats("entry.value", "cross_attn");
  }

  // One token a letter: as many windows as there are letters.
  static std::string windows(const std::string& letters) {
    std::string prompt;
    for (const char letter : letters)
      for (int i = 0; i < 75; ++i) prompt += std::string(1, letter) + " ";
    return prompt;
  }

  // Rows of the calls that a node made, as it had told them.
  static std::vector<std::string> calls(const std::string& prompt, const std::string& node,
                                        const heddle::EngineOptions& options) {
    Engine::Data engine(options);
    const heddle::test::Checked checked = heddle::test::infer_and_run(engine, flow(quoted(prompt)));
    BOOST_TEST(checked.inferred.calls.at(node) == checked.made.calls.at(node),
               boost::test_tools::per_element());
    for (const auto& [output, tensors] : checked.made.outputs)
      BOOST_TEST(checked.inferred.outputs.at(output) == tensors, output);
    return checked.made.calls.at(node);
  }
};

bool has_part(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(prompts, PromptFixture)

BOOST_AUTO_TEST_CASE(windows_are_encoded_sixteen_at_a_time) {
  const std::string letters = "abcdefghijklmnopqrstuvwxyzabcdefghijklm";  // 39
  const std::vector<std::string> all = calls(windows(letters), "text", options());
  BOOST_REQUIRE(all.size() == 3u);
  for (std::size_t i = 0; i < 3; ++i)
    BOOST_TEST(has_part(all[i], i < 2 ? "ids: i32(16, 77)" : "ids: i32(7, 77)"), all[i]);
  // The empty prompt that weights are measured against goes with the first.
  const std::vector<std::string> weighted = calls("(b:1.5) " + windows(letters), "text", options());
  BOOST_REQUIRE(weighted.size() == 3u);
  BOOST_TEST(has_part(weighted[0], "ids: i32(16, 77)"), weighted[0]);
  BOOST_TEST(has_part(weighted[2], "ids: i32(9, 77)"), weighted[2]);
}

BOOST_AUTO_TEST_CASE(windows_that_nobody_reads_are_not_encoded) {
  const std::vector<std::string> all =
      calls(windows("abcdefghijklmnopqrstuvwxyz"), "flux", options());
  BOOST_REQUIRE(all.size() == 2u);  // T5 reads its window, CLIP is asked for one vector
  BOOST_TEST(has_part(all[1], "ids: i32(16, "), all[1]);
}

BOOST_AUTO_TEST_CASE(batches_of_windows_do_not_change_bytes) {
  const std::string letters = "abcdefghijklmnopqrstuvwxyzabcdefghijklm";
  const std::vector<float> whole = encode(windows(letters));
  const std::size_t size = 77 * 64;
  BOOST_REQUIRE(whole.size() == letters.size() * size);
  for (const std::size_t window : {0u, 1u, 15u, 16u, 31u, 32u, 38u}) {
    const std::vector<float> alone = encode(windows(letters.substr(window, 1)));
    BOOST_REQUIRE(alone.size() == size);
    BOOST_TEST(
        std::equal(alone.begin(), alone.end(), whole.begin() + std::ptrdiff_t(window * size)),
        "window " << window);
  }
}

BOOST_AUTO_TEST_CASE(batches_of_weighted_windows_do_not_change_bytes) {
  const auto weighted = [](const std::string& letters) { return "(" + windows(letters) + ":1.5)"; };
  const std::string letters = "abcdefghijklmnopqrst";
  const std::vector<float> whole = encode(weighted(letters));
  const std::size_t size = 77 * 64;
  BOOST_REQUIRE(whole.size() == letters.size() * size);
  for (const std::size_t window : {0u, 14u, 15u, 19u}) {
    const std::vector<float> alone = encode(weighted(letters.substr(window, 1)));
    BOOST_TEST(
        std::equal(alone.begin(), alone.end(), whole.begin() + std::ptrdiff_t(window * size)),
        "window " << window);
  }
}

BOOST_AUTO_TEST_CASE(embeddings_are_left_out_with_one_warning) {
  std::vector<std::string> warnings;
  const auto observe = [&](const heddle::Event& event) {
    if (event.kind == heddle::Event::Kind::warning) warnings.emplace_back(event.text);
  };
  const auto text = [&](const std::string& prompt) {
    return engine->start(engine->parse(flow(quoted(prompt))), {observe, {"entry.value"}})
        .wait()
        .floats("entry.value", "cross_attn");
  };
  const std::vector<float> without = text("a b");
  BOOST_TEST(warnings.empty());
  BOOST_TEST(text("embedding:nowhere a b") == without, boost::test_tools::per_element());
  BOOST_REQUIRE(warnings.size() == 2u);  // of the two nodes that encode it
  for (const std::string& warning : warnings)
    BOOST_TEST(has_part(warning, "'nowhere'. These words are left out"), warning);
}

// A prompt of two windows, with vectors of all kinds of files, in one of them with weights.
const std::string kNamed =
    "a b c d e embedding:one, f(g h  embedding:pair:1.3)" +
    std::string(R"( i i i i i i i i i i i i i i i i i i i i i i i i i i i)") +
    " i i i i i i i i i i i i i i i i i i i i i i i i i i i i" +
    " embedding:many embedding:below/plain j k l";

BOOST_AUTO_TEST_CASE(vectors_of_embeddings_stand_for_tokens) {
  std::filesystem::create_symlink(nodes.here() / "data/embeddings",
                                  nodes.folder / "models/embeddings");
  const heddle::test::TensorFile golden(nodes.here() / "embedding_goldens.safetensors");
  const heddle::Results results =
      engine->start(engine->parse(flow(quoted(kNamed))), {{}, {"entry.value"}}).wait();
  for (const char* field : {"cross_attn", "pooled_output"}) {
    const std::vector<float> expected = golden.floats(field),
                             made = results.floats("entry.value", field);
    BOOST_REQUIRE(made.size() == expected.size());
    float worst = 0;
    for (std::size_t i = 0; i < made.size(); ++i)
      worst = std::max(worst, std::abs(made[i] - expected[i]));
    BOOST_TEST(worst <= 1e-5f, field);
  }
  const std::vector<std::string> all = calls(kNamed, "text", options());
  BOOST_REQUIRE(all.size() == 1u);
  BOOST_TEST(has_part(all[0], "vectors: f32(3, 77, 64)"), all[0]);
}

BOOST_AUTO_TEST_CASE(an_embedding_is_read_again_when_its_file_has_changed) {
  const std::filesystem::path folder = nodes.folder / "models/embeddings/mine";
  std::filesystem::create_directories(folder);
  // Files of different sizes, as the clock of a file system may stand still between them.
  const auto write = [&](float value, std::size_t more) {
    heddle::test::write_safetensors(
        folder / "tone.safetensors",
        {{"emb_params", "F32", {1, 64}, heddle::test::bytes_of_floats(std::vector(64, value))},
         {"more",
          "F32",
          {std::int64_t(more)},
          heddle::test::bytes_of_floats(std::vector(more, value))}});
  };
  const std::vector<float> without = encode("a embedding:tone b");
  write(0.5f, 1);
  const std::vector<float> half = encode("a embedding:tone b");
  write(0.25f, 2);
  const std::vector<float> quarter = encode("a embedding:tone b");
  BOOST_TEST(without != half);
  BOOST_TEST(half != quarter);
  // What leaves the folder is left out as what is nowhere.
  const std::vector<float> nowhere = encode("a embedding:nowhere b");
  BOOST_TEST(quarter != nowhere);
  BOOST_TEST(encode("a embedding:../mine/tone b") == nowhere);
}

BOOST_AUTO_TEST_CASE(embeddings_are_found_in_folders_behind_links) {
  const std::filesystem::path outside = nodes.folder / "outside",
                              place = nodes.folder / "models/embeddings";
  std::filesystem::create_directories(outside / "inner");
  std::filesystem::create_directories(place);
  heddle::test::write_safetensors(
      outside / "inner/far.safetensors",
      {{"emb_params", "F32", {1, 64}, heddle::test::bytes_of_floats(std::vector(64, 0.5f))}});
  const std::vector<float> without = encode("a embedding:far b");
  // To folders that hold them, too; and to nothing.
  std::filesystem::create_directory_symlink(outside, place / "linked");
  std::filesystem::create_directory_symlink(outside, outside / "inner/again");
  std::filesystem::create_directory_symlink(place, outside / "back");
  std::filesystem::create_symlink(nodes.folder / "missing", place / "dangling");
  const std::vector<float> found = encode("a embedding:far b");
  BOOST_TEST(found != without);
  BOOST_TEST(encode("a embedding:inner/far b") == found);
}

BOOST_AUTO_TEST_CASE(an_embedding_for_another_encoder_is_left_out_and_named) {
  std::filesystem::create_directories(nodes.folder / "models/embeddings");
  heddle::test::write_safetensors(
      nodes.folder / "models/embeddings/wide.safetensors",
      {{"emb_params", "F32", {2, 96}, heddle::test::bytes_of_floats(std::vector(192, 0.5f))}});
  nodes.folder.write("models/embeddings/broken.pt", "no file of tensors");
  std::vector<std::string> warnings;
  const auto observe = [&](const heddle::Event& event) {
    if (event.kind == heddle::Event::Kind::warning && event.node == "text")
      warnings.emplace_back(event.text);
  };
  const auto text = [&](const std::string& prompt) {
    return engine->start(engine->parse(flow(quoted(prompt))), {observe, {"entry.value"}})
        .wait()
        .floats("entry.value", "cross_attn");
  };
  BOOST_TEST(text("embedding:wide a embedding:broken") == text("a"));
  BOOST_REQUIRE(warnings.size() == 3u);
  BOOST_TEST(has_part(warnings[0], "wide.safetensors: it has no vectors of 64"), warnings[0]);
  BOOST_TEST(has_part(warnings[1], "broken.pt"), warnings[1]);
  BOOST_TEST(has_part(warnings[2], "'broken', 'wide'. These words are left out"), warnings[2]);
}

BOOST_AUTO_TEST_CASE(a_prompt_beyond_the_limit_is_refused_before_the_run) {
  heddle::EngineOptions limited = options();
  limited.prompt_limit = 100;
  engine = std::make_unique<Engine>(limited);
  const std::string fits(100, 'a'), longer(101, 'a');
  BOOST_TEST(encode(fits).size() == 2u * 77 * 64);
  const std::string words =
      R"("words": {"class_type": "PrimitiveString", "inputs": {"value": ")" + longer + R"("}}, )";
  for (const std::string& text : {flow(quoted(longer)), flow(R"(["words", 0])", words)}) {
    const heddle::Workflow parsed = engine->parse(text);
    for (const bool starts : {false, true}) {
      try {
        if (starts)
          engine->start(parsed);
        else
          engine->plan(parsed);
        BOOST_ERROR("not refused");
      } catch (const EngineError& error) {
        const std::string reason = error.what();
        BOOST_TEST(error.code() == HEDDLE_INVALID_ARGUMENT);
        for (const char* part :
             {"text", "input 'text'", "101 bytes", "limit of 100", "--prompt-limit", "flux"})
          BOOST_TEST(has_part(reason, part), reason);
      }
    }
  }
  BOOST_TEST(engine->check(engine->parse(flow(quoted(longer)))).errors.size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_prompt_that_another_node_makes_too_long_fails_the_node_that_gets_it) {
  heddle::EngineOptions limited = options();
  limited.prompt_limit = 100;
  engine = std::make_unique<Engine>(limited);
  const std::string greeting =
      R"("words": {"class_type": "demo.hello", "inputs": {"name": "heddle", "times": 20}}, )";
  const heddle::Workflow parsed = engine->parse(flow(R"(["words", 0])", greeting));
  engine->plan(parsed);  // knows nothing of it
  heddle::Run run = engine->start(parsed);
  const std::string reason = engine_refusal([&] { run.wait(); });
  for (const char* part : {"(CLIPTextEncode)", "input 'text'", "300 bytes", "--prompt-limit"})
    BOOST_TEST(has_part(reason, part), reason);
}

BOOST_AUTO_TEST_SUITE_END()
