// Language models that write: the scores of the next token, by the whole text at once and by its
// last token with the kept keys and values of those before, against the states that transformers
// computes (make_language_goldens.py).
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

struct WritingFixture {
  static constexpr std::int64_t kLength = 21, kRoom = 24, kWindow = 8, kLayers = 3;

  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path goldens = tests_folder() / "plugins/goldens/language";
  TensorFile expected{goldens / "expected.safetensors"};
  heddle::engine::Json configs =
      heddle::engine::parse_json(read_text(goldens / "configs.json"), "configs.json");

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
  heddle::Results call(const std::string& name, const std::vector<FileTensor>& inputs) {
    const std::filesystem::path path = temporary / "inputs.safetensors";
    write_safetensors(path, inputs);
    const std::string config = heddle::engine::write_json(*configs.find(name));
    return probe.call({goldens / (name + ".safetensors"), "text_encoder",
                       R"({"writes_texts": true, )" + config.substr(1), path, "in."});
  }
  // 0 where the last token sees what is kept of the others, and itself.
  static FileTensor seen(const std::string& name, std::int64_t first) {
    std::vector<float> hidden(kRoom + 1, -1e30f);
    std::fill(hidden.begin() + first, hidden.begin() + kLength - 1, 0.0f);
    hidden.back() = 0;
    return numbers(name, {1, kRoom + 1}, hidden);
  }
  // By the states of transformers and the table of tokens.
  std::vector<float> wanted(const std::string& name) const {
    const TensorFile file(goldens / (name + ".safetensors"));
    const TensorFile::Entry& table = file.at("model.embed_tokens.weight");
    const std::vector<float> states = expected.floats(name + ".last_hidden");
    const auto rows = std::size_t(table.shape[0]), width = std::size_t(table.shape[1]);
    std::vector<float> values(rows * width), scores(rows, 0.0f);
    heddle::engine::to_floats(heddle::engine::DType::bf16, std::as_bytes(std::span(table.bytes)),
                              values.data());
    const float* const last = states.data() + (kLength - 1) * std::int64_t(width);
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t i = 0; i < width; ++i) scores[row] += last[i] * values[row * width + i];
    return scores;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(language_writing, WritingFixture)

BOOST_AUTO_TEST_CASE(one_token_beside_what_is_kept_has_the_scores_of_the_whole_text) {
  for (const std::string name : {"qwen2.5", "qwen3", "mistral3", "gemma2", "qwen3vl", "gemma3"}) {
    const std::vector<float> scores = wanted(name);
    const auto compare = [&](const heddle::Results& results, const char* what) {
      const double error = relative_error(results.floats("model.outputs", "logits.0"), scores);
      BOOST_TEST(error < 1e-5, name << ", " << what << ": relative error " << error);
    };
    compare(call(name, text(name, 0, kLength)), "whole");
    const heddle::Results before = call(name, text(name, 0, kLength - 1));
    std::vector<FileTensor> inputs = text(name, kLength - 1, kLength);
    inputs.push_back(seen("in.seen", 0));
    inputs.push_back(seen("in.near", kLength - kWindow));
    for (std::int64_t i = 0; i < kLayers; ++i) {
      const std::string kept = "kept." + std::to_string(i);
      std::vector<float> values = before.floats("model.outputs", kept + ".0");
      const auto width = std::int64_t(values.size()) / (kLength - 1);
      values.resize(std::size_t(kRoom * width), 0.0f);
      inputs.push_back(numbers("in." + kept, {1, kRoom, width}, values));
    }
    compare(call(name, inputs), "kept");
  }
}

BOOST_AUTO_TEST_CASE(more_than_one_token_beside_what_is_kept_is_refused) {
  std::vector<FileTensor> inputs = text("qwen3", 0, 2);
  inputs.push_back(seen("in.seen", 0));
  for (std::int64_t i = 0; i < kLayers; ++i)
    inputs.push_back(numbers("in.kept." + std::to_string(i), {1, kRoom, 64},
                             std::vector<float>(std::size_t(kRoom) * 64, 0.0f)));
  const std::string refusal = engine_refusal([&] { call("qwen3", inputs); });
  for (const char* word : {"one token at a time", "2"})
    BOOST_TEST(refusal.find(word) != std::string::npos, "'" << word << "' is not in: " << refusal);
}

BOOST_AUTO_TEST_SUITE_END()
