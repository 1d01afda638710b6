// Gemma 4 with random weights against what transformers makes of the same files
// (make_gemma4_goldens.py): as it encodes, and as it writes.
#include <boost/test/unit_test.hpp>
#include <span>

#include "engine/base/json.h"
#include "engine/tensor/numbers.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

// As of the other language models (language_model_test.cpp).
constexpr double kGemma4Tolerance = 5e-6;
constexpr const char* kGemma4Variants[] = {"dense", "told"};

struct Gemma4Fixture {
  static constexpr std::int64_t kLength = 21, kRoom = 24, kWindow = 8;

  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path goldens = tests_folder() / "plugins/goldens/gemma4";
  TensorFile expected{goldens / "expected.safetensors"};
  heddle::engine::Json configs =
      heddle::engine::parse_json(read_text(goldens / "configs.json"), "configs.json");

  std::string config(const std::string& name, const std::string& more) const {
    return "{" + more + ", " + heddle::engine::write_json(*configs.find(name)).substr(1);
  }
  std::filesystem::path file(const std::string& name) const {
    return goldens / (name + ".safetensors");
  }
  heddle::Results states(const std::filesystem::path& path, const std::string& name,
                         const std::string& config) {
    return probe.call(
        {path, "text_encoder", config, goldens / "expected.safetensors", (name + ".").c_str()});
  }
  void compare(const heddle::Results& results, const std::string& golden) const {
    const double error =
        relative_error(results.floats("model.outputs", "last_hidden.0"), expected.floats(golden));
    BOOST_TEST_MESSAGE(golden << ": relative error " << error);
    BOOST_TEST(error < kGemma4Tolerance, golden << ": relative error " << error);
  }
  std::vector<FileTensor> tensors_of(const std::string& name) const {
    std::vector<FileTensor> tensors;
    const TensorFile all(file(name));
    for (const auto& [tensor, entry] : all.entries())
      tensors.push_back({tensor, entry.dtype, entry.shape, entry.bytes});
    return tensors;
  }
  std::filesystem::path written(const std::vector<FileTensor>& tensors) const {
    const std::filesystem::path path = temporary / "changed.safetensors";
    write_safetensors(path, tensors);
    return path;
  }

  static FileTensor numbers(const std::string& name, const std::vector<std::int64_t>& shape,
                            const std::vector<float>& values) {
    return {name, "F32", shape, bytes_of_floats(values)};
  }
  // Ids from `begin` to `end` of the first row, and where they stand.
  std::vector<FileTensor> text(const std::string& name, std::int64_t begin,
                               std::int64_t end) const {
    const std::string all = expected.at(name + ".ids").bytes;
    std::vector<float> positions;
    for (std::int64_t i = begin; i < end; ++i) positions.insert(positions.end(), 3, float(i));
    return {{"in.ids", "I32", {1, end - begin}, all.substr(4 * begin, 4 * (end - begin))},
            numbers("in.positions", {end - begin, 3}, positions)};
  }
  heddle::Results write(const std::string& name, const std::vector<FileTensor>& inputs) {
    const std::filesystem::path path = temporary / "inputs.safetensors";
    write_safetensors(path, inputs);
    return probe.call(
        {file(name), "text_encoder", config(name, R"("writes_texts": true)"), path, "in."});
  }
  static FileTensor seen(const std::string& name, std::int64_t first) {
    std::vector<float> hidden(kRoom + 1, -1e30f);
    std::fill(hidden.begin() + first, hidden.begin() + kLength - 1, 0.0f);
    hidden.back() = 0;
    return numbers(name, {1, kRoom + 1}, hidden);
  }
  // By the last state of transformers and the table of tokens.
  std::vector<float> wanted_scores(const std::string& name) const {
    const TensorFile all(file(name));
    const TensorFile::Entry& table = all.at("model.embed_tokens.weight");
    const std::vector<float> states = expected.floats(name + ".states");
    const auto rows = std::size_t(table.shape[0]), width = std::size_t(table.shape[1]);
    const std::size_t all_states = states.size() / (2 * kLength);
    std::vector<float> values(rows * width), scores(rows, 0.0f);
    heddle::engine::to_floats(heddle::engine::DType::bf16, std::as_bytes(std::span(table.bytes)),
                              values.data());
    const float* const last = states.data() + kLength * all_states - width;
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t i = 0; i < width; ++i) scores[row] += last[i] * values[row * width + i];
    return scores;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(gemma4, Gemma4Fixture)

BOOST_AUTO_TEST_CASE(states_of_all_layers_equal_those_of_transformers) {
  for (const std::string name : kGemma4Variants) {
    compare(states(file(name), name, config(name, R"("all_states": true)")), name + ".states");
    std::string wide = config(name, R"("all_states": true)");
    wide.replace(wide.find(R"("sliding_window":8)"), 18, R"("sliding_window":64)");
    compare(states(file(name), name, wide), name + ".wide.states");
  }
}

// Which layers see through windows, share keys and values, and have keys for values is read off the
// tensors, but the window itself.
BOOST_AUTO_TEST_CASE(a_file_without_a_config_tells_its_layers_itself) {
  for (const std::string name : kGemma4Variants)
    compare(states(file(name), name, R"({"all_states": true, "sliding_window": 8})"),
            name + ".states");
}

// The published files have matrices in layers that share, which nobody reads.
BOOST_AUTO_TEST_CASE(matrices_of_layers_that_share_are_not_read) {
  std::vector<FileTensor> tensors = tensors_of("told");
  for (int layer = 3; layer < 7; ++layer)
    for (const char* module : {"k_proj", "v_proj"})
      tensors.push_back(
          numbers("model.layers." + std::to_string(layer) + ".self_attn." + module + ".weight",
                  {layer == 4 || layer == 6 ? 24 : 8, 40},
                  std::vector<float>(layer == 4 || layer == 6 ? 960 : 320, 1.0f)));
  compare(states(written(tensors), "told", config("told", R"("all_states": true)")), "told.states");
  compare(states(written(tensors), "told", R"({"all_states": true, "sliding_window": 8})"),
          "told.states");
}

BOOST_AUTO_TEST_CASE(a_file_of_the_whole_model_has_other_names) {
  std::vector<FileTensor> tensors = tensors_of("told");
  for (FileTensor& tensor : tensors) tensor.name.replace(0, 6, "model.language_model.");
  compare(states(written(tensors), "told",
                 R"({"model_type": "gemma4", "all_states": true, "text_config": )" +
                     heddle::engine::write_json(*configs.find("told")) + "}"),
          "told.states");
}

BOOST_AUTO_TEST_CASE(one_token_beside_what_is_kept_has_the_scores_of_the_whole_text) {
  for (const std::string name : kGemma4Variants) {
    const std::vector<float> scores = wanted_scores(name);
    const auto compare = [&](const heddle::Results& results, const char* what) {
      const double error = relative_error(results.floats("model.outputs", "logits.0"), scores);
      BOOST_TEST(error < 1e-5, name << ", " << what << ": relative error " << error);
    };
    compare(write(name, text(name, 0, kLength)), "whole");
    const heddle::Results before = write(name, text(name, 0, kLength - 1));
    std::vector<FileTensor> inputs = text(name, kLength - 1, kLength);
    inputs.push_back(seen("in.seen", 0));
    inputs.push_back(seen("in.near", kLength - kWindow));
    const int keeping = name == "told" ? 3 : 6;
    for (int i = 0; i < keeping; ++i) {
      const std::string kept = "kept." + std::to_string(i);
      std::vector<float> values = before.floats("model.outputs", kept + ".0");
      const auto width = std::int64_t(values.size()) / (kLength - 1);
      values.resize(std::size_t(kRoom * width), 0.0f);
      inputs.push_back(numbers("in." + kept, {1, kRoom, width}, values));
    }
    compare(write(name, inputs), "kept");
  }
}

BOOST_AUTO_TEST_CASE(files_that_do_not_fit_are_refused) {
  const auto refusal = [&](const std::string& name, auto&& change) {
    std::vector<FileTensor> tensors = tensors_of(name);
    change(tensors);
    const std::filesystem::path path = written(tensors);
    return engine_refusal([&] { states(path, name, config(name, R"("all_states": true)")); });
  };
  const auto says = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  says(refusal("dense",
               [](auto& tensors) {
                 tensors.push_back(
                     numbers("model.layers.0.router.proj.weight", {4, 24}, std::vector<float>(96)));
               }),
       {"changed.safetensors", "experts", "26B"});
  const auto without = [](const char* part) {
    return [part](auto& tensors) {
      std::erase_if(tensors, [&](const FileTensor& t) { return t.name.find(part) != t.name.npos; });
    };
  };
  says(refusal("dense", without("layers.3.mlp.down_proj")), {"layers.3.mlp.down_proj.weight"});
  says(refusal("told", without("layers.2.per_layer_projection")),
       {"layers.2.per_layer_projection.weight"});
  says(refusal("dense",
               [](auto& tensors) {
                 for (FileTensor& tensor : tensors)
                   if (tensor.name == "model.layers.1.self_attn.q_norm.weight")
                     tensor.shape = {15}, tensor.bytes.resize(30);
               }),
       {"layer 1", "heads of 15"});
  says(refusal("told",
               [](auto& tensors) {
                 for (FileTensor& tensor : tensors)
                   if (tensor.name == "model.embed_tokens_per_layer.weight")
                     tensor.shape = {60, 83}, tensor.bytes.resize(2 * 60 * 83);
               }),
       {"embed_tokens_per_layer", "83", "7 layers"});
}

BOOST_AUTO_TEST_SUITE_END()
