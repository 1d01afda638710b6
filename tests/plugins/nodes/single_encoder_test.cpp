// Text encoders in files of their own, of published sizes of vocabulary: where their tokenizers
// come from, and which comes first.
#include "tests/plugins/nodes/node_fixture.h"

using heddle::Results;
using heddle::test::engine_refusal;
using heddle::test::FileTensor;
using heddle::test::NodeFixture;

namespace {

struct SingleEncoders : NodeFixture {
  using Floats = std::vector<float>;

  static void fill(FileTensor& tensor, std::int64_t rows) {
    if (rows > 0) tensor.shape[0] = rows;
    std::uint32_t state = std::uint32_t(rows) + 1;
    Floats values(std::size_t(tensor.shape[0] * (tensor.shape.size() > 1 ? tensor.shape[1] : 1)));
    for (float& value : values) {
      state = state * 1664525u + 1013904223u;
      value = (float(state >> 8) / float(1u << 24) - 0.5f) * 0.4f;
    }
    tensor.dtype = "F32";
    tensor.bytes = heddle::test::bytes_of_floats(values);
  }

  void write_t5(std::int64_t rows, const std::string& spiece = "") {
    std::vector<FileTensor> tensors;
    const heddle::test::TensorFile small(random() / "t5.safetensors");
    for (const auto& [name, entry] : small.entries())
      tensors.push_back({name, entry.dtype, entry.shape, entry.bytes});
    for (FileTensor& tensor : tensors)
      if (tensor.name == "shared.weight") fill(tensor, rows);
    if (!spiece.empty())
      tensors.push_back({"spiece_model", "U8", {std::int64_t(spiece.size())}, spiece});
    heddle::test::write_safetensors(folder / "models/text_encoders/t5xxl_fp16.safetensors",
                                    tensors);
  }
  void write_clip(std::int64_t rows) {
    std::vector<FileTensor> tensors = clip_tensors();
    for (FileTensor& tensor : tensors)
      fill(tensor, tensor.name.ends_with("token_embedding.weight") ? rows : 0);
    heddle::test::write_safetensors(folder / "models/text_encoders/clip_l_big.safetensors",
                                    tensors);
  }

  // Of the first entry of the conditioning: T5's states and CLIP's pooled vector, one after
  // another.
  Floats encode(const std::string& text) {
    heddle::Engine fresh(options_again());
    const Results results =
        fresh
            .start(
                fresh.parse(
                    R"({"clip": {"class_type": "DualCLIPLoader", "inputs": {"clip_name1": "clip_l_big.safetensors",
                             "clip_name2": "t5xxl_fp16.safetensors", "type": "flux"}},
                           "text": {"class_type": "CLIPTextEncode", "inputs": {"text": ")" +
                    text + R"(", "clip": ["clip", 0]}},
                           "entry": {"class_type": "test.first", "inputs": {"list": ["text", 0]}},
                           "look": {"class_type": "test.look", "inputs": {"value": ["entry", 0]}}})"),
                {{}, {"entry.value"}})
            .wait();
    Floats all = results.floats("entry.value", "cross_attn");
    const Floats pooled = results.floats("entry.value", "pooled_output");
    all.insert(all.end(), pooled.begin(), pooled.end());
    return all;
  }
  heddle::EngineOptions options_again() const {
    heddle::EngineOptions options = heddle::test::engine_options();
    options.compute[heddle::test::test_device_kind()] = "f32";
    options.model_dirs = {folder / "models"};
    return options;
  }

  void give_folder(const char* name, const std::filesystem::path& from) {
    std::filesystem::create_directories(folder / "models/tokenizers");
    std::filesystem::create_directory_symlink(from, folder / "models/tokenizers" / name);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(single_encoders, SingleEncoders)

BOOST_AUTO_TEST_CASE(published_encoders_need_no_tokenizer_from_anywhere) {
  write_t5(32128);
  write_clip(49408);
  const Floats whale = encode("a whale at sea"), again = encode("a whale  at sea");
  BOOST_TEST(whale.size() == 256u * 24 + 64);
  BOOST_TEST(whale == again);  // both tokenizers take white space together
  const Floats other = encode("a lighthouse at sea");
  BOOST_TEST(Floats(whale.begin(), whale.end() - 64) != Floats(other.begin(), other.end() - 64));
  BOOST_TEST(Floats(whale.end() - 64, whale.end()) != Floats(other.end() - 64, other.end()));
}

BOOST_AUTO_TEST_CASE(a_folder_comes_before_the_file_and_the_file_before_what_ships) {
  const std::filesystem::path tiny = std::filesystem::path(HEDDLE_SOURCE_DIR) /
                                     "graphs/models/diffusers/tiny-scenes/tokenizer_2/spiece.model";
  const std::string spiece = heddle::test::read_text(tiny);
  const std::string prompt = "a red house";
  write_clip(49408);
  write_t5(32128);
  const Floats shipped = encode(prompt);
  write_t5(32128, spiece);
  const Floats inside = encode(prompt);
  write_t5(32128);
  std::filesystem::create_directories(folder / "models/tokenizers/t5xxl");
  std::filesystem::copy_file(tiny, folder / "models/tokenizers/t5xxl/spiece.model");
  BOOST_TEST(inside == encode(prompt));
  BOOST_TEST(inside != shipped);
  std::filesystem::remove_all(folder / "models/tokenizers/t5xxl");
  write_t5(32128, spiece);
  give_folder("t5xxl", here() / "pipeline/tokenizer_2");
  const Floats other = encode(prompt);
  BOOST_TEST(other != inside);
  BOOST_TEST(other != shipped);
}

BOOST_AUTO_TEST_CASE(a_damaged_tokenizer_in_a_file_is_refused_by_its_name) {
  write_clip(49408);
  write_t5(32128, "no model");
  const std::string text = engine_refusal([&] { encode("a house"); });
  BOOST_TEST(text.find("t5xxl_fp16.safetensors: tensor 'spiece_model'") != std::string::npos, text);
}

// umT5 has T5's form and another vocabulary.
BOOST_AUTO_TEST_CASE(an_encoder_of_another_vocabulary_does_not_get_what_ships) {
  write_clip(49408);
  write_t5(256384);
  const std::string text = engine_refusal([&] { encode("a house"); });
  BOOST_TEST(text.find("needs its tokenizer") != std::string::npos, text);
  BOOST_TEST(text.find("256384") != std::string::npos, text);
}

BOOST_AUTO_TEST_SUITE_END()
