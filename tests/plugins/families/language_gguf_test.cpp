// Decoder-only language models in gguf files, as llama.cpp writes them: their states are those of
// the same models in transformers (../goldens/make_language_goldens.py). And in 16 bits.
#include <boost/test/unit_test.hpp>
#include <cstring>

#include "engine/base/json.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

struct LanguageGguf {
  TemporaryFolder temporary;
  const std::filesystem::path goldens = tests_folder() / "plugins/goldens/language";
  TensorFile expected{goldens / "expected.safetensors"};
  static constexpr std::int64_t kHead = 16;

  std::string config(const char* variant) const {
    return heddle::engine::write_json(
        *heddle::engine::parse_json(read_text(goldens / "configs.json"), "configs.json")
             .find(variant));
  }
  double error_of(ModelProbe& probe, const std::filesystem::path& file,
                  const std::string& variant) const {
    return error_of(probe, file, variant, config(variant.c_str()));
  }
  double error_of(ModelProbe& probe, const std::filesystem::path& file, const std::string& variant,
                  const std::string& config) const {
    const std::string prefix = variant + ".";
    const heddle::Results results = probe.call(
        {file, "text_encoder", config, goldens / "expected.safetensors", prefix.c_str()});
    return relative_error(results.floats("model.outputs", "last_hidden.0"),
                          expected.floats(prefix + "last_hidden"));
  }

  static std::string name_in_gguf(std::string name, bool norms_results) {
    const std::pair<const char*, const char*> names[] = {
        {"model.layers.", "blk."},
        {"model.embed_tokens", "token_embd"},
        {"model.norm", "output_norm"},
        {"self_attn.q_proj", "attn_q"},
        {"self_attn.k_proj", "attn_k"},
        {"self_attn.v_proj", "attn_v"},
        {"self_attn.o_proj", "attn_output"},
        {"self_attn.q_norm", "attn_q_norm"},
        {"self_attn.k_norm", "attn_k_norm"},
        {"input_layernorm", "attn_norm"},
        {"post_attention_layernorm", norms_results ? "post_attention_norm" : "ffn_norm"},
        {"pre_feedforward_layernorm", "ffn_norm"},
        {"post_feedforward_layernorm", "post_ffw_norm"},
        {"mlp.gate_proj", "ffn_gate"},
        {"mlp.up_proj", "ffn_up"},
        {"mlp.down_proj", "ffn_down"}};
    for (const auto& [from, to] : names)
      if (const std::size_t at = name.find(from); at != std::string::npos)
        name.replace(at, std::string(from).size(), to);
    return name;
  }
  // Rows of heads whose halves turn together, with what turns together side by side.
  static std::string neighbours(const std::string& bytes, std::int64_t rows) {
    const std::size_t row = bytes.size() / std::size_t(rows);
    std::string turned;
    for (std::int64_t head = 0; head < rows / kHead; ++head)
      for (std::int64_t i = 0; i < kHead / 2; ++i)
        for (std::int64_t half = 0; half < 2; ++half)
          turned += bytes.substr(std::size_t(head * kHead + half * kHead / 2 + i) * row, row);
    return turned;
  }
  // bf16 as f32, plus one.
  static std::string one_more(const std::string& bytes) {
    std::string wide;
    for (std::size_t i = 0; i < bytes.size(); i += 2) {
      const std::string bits = std::string(2, '\0') + bytes.substr(i, 2);
      float value = 0;
      std::memcpy(&value, bits.data(), sizeof value);
      wide += gguf_number(value + 1);
    }
    return wide;
  }
  // As llama.cpp converts it: of its own architecture with queries and keys turned, of Gemma with
  // the norms' weights as they multiply.
  std::filesystem::path write(const std::string& variant, const std::string& architecture) const {
    const bool is_llama = architecture == "llama", is_gemma = architecture.starts_with("gemma");
    GgufContent content;
    content.entries = {{"general.architecture", kGgufText, gguf_text(architecture)}};
    const TensorFile all(goldens / (variant + ".safetensors"));
    for (const auto& [name, entry] : all.entries()) {
      const std::string& bytes = entry.bytes;
      const bool is_turned =
          is_llama && (name.ends_with("q_proj.weight") || name.ends_with("k_proj.weight"));
      const bool is_raised = is_gemma && name.find("norm") != std::string::npos;
      std::vector<std::uint64_t> sizes(entry.shape.rbegin(), entry.shape.rend());
      content.tensors.push_back({name_in_gguf(name, is_gemma), is_raised ? kGgmlF32 : kGgmlBF16,
                                 sizes,
                                 is_turned   ? neighbours(bytes, entry.shape[0])
                                 : is_raised ? one_more(bytes)
                                             : bytes});
    }
    return temporary.write(variant + ".gguf", gguf_bytes(content));
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(language_gguf, LanguageGguf)

BOOST_AUTO_TEST_CASE(files_of_llama_cpp_give_the_states_of_transformers) {
  ModelProbe probe;
  const std::pair<const char*, const char*> variants[] = {
      {"mistral3", "llama"}, {"gemma2", "gemma2"}, {"gemma3", "gemma3"}, {"qwen2.5", "qwen2vl"}};
  for (const auto& [variant, architecture] : variants) {
    const double error = error_of(probe, write(variant, architecture), variant);
    BOOST_TEST(error < 5e-6, variant << ": relative error " << error);
  }
}

BOOST_AUTO_TEST_CASE(the_architecture_tells_qwen3_vl) {
  ModelProbe probe;
  const double error = error_of(probe, write("qwen3vl", "qwen3vl"), "qwen3vl", "");
  BOOST_TEST(error < 5e-6, "relative error " << error);
}

BOOST_AUTO_TEST_CASE(sixteen_bits_are_near_those_of_32) {
  ModelProbe probe("bf16");
  for (const std::string variant :
       {"qwen2.5", "qwen3", "mistral3", "gemma2", "gemma3", "qwen3vl"}) {
    const double error = error_of(probe, goldens / (variant + ".safetensors"), variant);
    BOOST_TEST(error > 1e-5, variant);
    BOOST_TEST(error < 0.03, variant << ": relative error " << error);
  }
}

BOOST_AUTO_TEST_SUITE_END()
