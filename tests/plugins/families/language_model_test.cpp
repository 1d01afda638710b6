// Decoder-only language models with random weights, whole and through the engine, against what
// transformers makes of the same files (make_language_goldens.py).
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

// As in random_models_test.cpp; the rotary table is computed in double, transformers' in float.
constexpr double kLanguageTolerance = 5e-6;
constexpr const char* kVariants[] = {"qwen2.5", "qwen3", "mistral3", "gemma2", "qwen3vl", "gemma3"};

std::filesystem::path language_folder() { return tests_folder() / "plugins/goldens/language"; }

struct LanguageFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  TensorFile expected{language_folder() / "expected.safetensors"};
  heddle::engine::Json configs =
      heddle::engine::parse_json(read_text(language_folder() / "configs.json"), "configs.json");

  // The variant's config with more in it.
  std::string config(const std::string& name, const std::string& more = "") const {
    const std::string text = heddle::engine::write_json(*configs.find(name));
    return more.empty() ? text : "{" + more + ", " + text.substr(1);
  }
  heddle::Results call(const std::filesystem::path& file, const std::string& name,
                       const std::string& config) {
    const std::string prefix = name + ".";
    return probe.call(
        {file, "text_encoder", config, language_folder() / "expected.safetensors", prefix.c_str()});
  }
  static std::filesystem::path file(const std::string& name) {
    return language_folder() / (name + ".safetensors");
  }
  // The variant's tensors, changed, as another file.
  template <class Change>
  std::filesystem::path changed(const std::string& name, Change&& change) const {
    std::vector<FileTensor> tensors;
    const TensorFile all(file(name));
    for (const auto& [tensor, entry] : all.entries())
      tensors.push_back({tensor, entry.dtype, entry.shape, entry.bytes});
    change(tensors);
    const std::filesystem::path path = temporary / "changed.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  void compare(const heddle::Results& results, const std::string& golden) const {
    const double error =
        relative_error(results.floats("model.outputs", "last_hidden.0"), expected.floats(golden));
    BOOST_TEST(error < kLanguageTolerance, golden << ": relative error " << error);
  }
};

// What a byte of f8_e4m3 stands for; not for its two NaNs.
float of_f8(std::uint8_t byte) {
  const int exponent = byte >> 3 & 15, mantissa = byte & 7;
  const float size = exponent == 0 ? std::ldexp(float(mantissa), -9)
                                   : std::ldexp(float(8 + mantissa), exponent - 10);
  return byte & 128 ? -size : size;
}

// The matrices of layers with other numbers: as bytes of f8_e4m3 with a scale each, and as the f32
// that these stand for.
struct ScaledMatrices {
  std::vector<FileTensor> scaled, plain;

  explicit ScaledMatrices(const std::vector<FileTensor>& tensors) {
    for (const FileTensor& tensor : tensors) {
      if (tensor.shape.size() != 2 || tensor.name.find("layers.") == std::string::npos) {
        scaled.push_back(tensor);
        plain.push_back(tensor);
        continue;
      }
      const float scale = 0.001f * float(1 + plain.size() % 5);
      std::string bytes;
      std::vector<float> values;
      for (std::int64_t i = 0; i < tensor.shape[0] * tensor.shape[1]; ++i) {
        state_ = state_ * 1664525u + 1013904223u;
        auto byte = std::uint8_t(state_ >> 24);
        if ((byte & 127) > 120) byte &= 0x8F;
        bytes += char(byte);
        values.push_back(of_f8(byte) * scale);
      }
      const std::string module = tensor.name.substr(0, tensor.name.size() - 6);
      scaled.push_back({tensor.name, "F8_E4M3", tensor.shape, bytes});
      scaled.push_back({module + "scale_weight", "F32", {}, bytes_of_floats({scale})});
      plain.push_back({tensor.name, "F32", tensor.shape, bytes_of_floats(values)});
    }
  }

 private:
  std::uint32_t state_ = 1;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(language_models, LanguageFixture)

BOOST_AUTO_TEST_CASE(states_behind_the_final_norm_equal_those_of_transformers) {
  for (const std::string name : kVariants)
    compare(call(file(name), name, config(name)), name + ".last_hidden");
}

BOOST_AUTO_TEST_CASE(states_of_a_layer_are_those_before_the_final_norm) {
  for (const std::string name : kVariants)
    for (const char* layer : {"1", "2"})
      compare(
          call(file(name), name, config(name, R"("hidden_layers": [)" + std::string(layer) + "]")),
          name + ".layer." + layer);
}

BOOST_AUTO_TEST_CASE(layers_are_asked_for_beside_the_config_of_a_text_part) {
  const std::string nested = R"({"model_type": "qwen2_5_vl", "text_config": )" + config("qwen2.5") +
                             R"(, "hidden_layers": [1]})";
  compare(call(file("qwen2.5"), "qwen2.5", nested), "qwen2.5.layer.1");
}

BOOST_AUTO_TEST_CASE(states_of_several_layers_stand_side_by_side) {
  const heddle::Results results =
      call(file("qwen3"), "qwen3", config("qwen3", R"("hidden_layers": [2, 1])"));
  const std::vector<float> both = results.floats("model.outputs", "last_hidden.0"),
                           one = expected.floats("qwen3.layer.1"),
                           two = expected.floats("qwen3.layer.2");
  constexpr std::size_t kWidth = 24;
  std::vector<float> wanted;
  for (std::size_t row = 0; row < one.size() / kWidth; ++row)
    for (const std::vector<float>* from : {&two, &one})
      wanted.insert(wanted.end(), from->begin() + std::ptrdiff_t(row * kWidth),
                    from->begin() + std::ptrdiff_t((row + 1) * kWidth));
  BOOST_TEST_REQUIRE(both.size() == wanted.size());
  BOOST_TEST(relative_error(both, wanted) < kLanguageTolerance);
}

// What the projection of LTX 2 reads: the embedding, and the states after each layer.
BOOST_AUTO_TEST_CASE(states_of_all_layers_stand_side_by_side_through_windows_of_any_length) {
  compare(call(file("gemma3"), "gemma3", config("gemma3", R"("all_states": true)")),
          "gemma3.states");
  std::string wide = config("gemma3", R"("all_states": true)");
  wide.replace(wide.find(R"("sliding_window":8)"), 18, R"("sliding_window":64)");
  compare(call(file("gemma3"), "gemma3", wide), "gemma3.wide.states");
}

BOOST_AUTO_TEST_CASE(the_text_part_of_a_multimodal_file_is_read) {
  for (const char* prefix : {"language_model.model.", "model.language_model."}) {
    const auto path = changed("gemma3", [&](std::vector<FileTensor>& tensors) {
      for (FileTensor& tensor : tensors) tensor.name.replace(0, 6, prefix);
      tensors.push_back({"vision_model.post_layernorm.weight", "F32", {1}, "1234"});
    });
    compare(call(path, "gemma3",
                 R"({"model_type": "gemma3", "text_config": )" + config("gemma3") + "}"),
            "gemma3.last_hidden");
  }
}

BOOST_AUTO_TEST_CASE(a_file_without_a_config_is_told_by_its_tensors) {
  compare(call(file("qwen3"), "qwen3", ""), "qwen3.last_hidden");
  const auto settings = heddle::engine::parse_json(
      call(file("qwen3"), "qwen3", "").text("model.settings"), "settings");
  BOOST_TEST(heddle::engine::write_json(*settings.find("kind")) == "\"qwen3\"");
  BOOST_TEST(heddle::engine::write_json(*settings.find("layers")) == "3");
  BOOST_TEST(heddle::engine::write_json(*settings.find("vocabulary")) == "60");
}

BOOST_AUTO_TEST_CASE(a_vision_tower_beside_it_tells_qwen3_vl) {
  const auto path = changed("qwen3vl", [](std::vector<FileTensor>& tensors) {
    for (FileTensor& tensor : tensors) tensor.name.insert(6, "language_model.");
    tensors.push_back({"model.visual.deepstack_merger_list.0.norm.weight", "F32", {1}, "1234"});
  });
  compare(call(path, "qwen3vl", ""), "qwen3vl.last_hidden");
}

BOOST_AUTO_TEST_CASE(names_of_llama_cpp_give_the_same_states) {
  const auto renamed = changed("qwen3", [](std::vector<FileTensor>& tensors) {
    const std::pair<const char*, const char*> names[] = {{"model.layers.", "blk."},
                                                         {"model.embed_tokens", "token_embd"},
                                                         {"model.norm", "output_norm"},
                                                         {"self_attn.q_proj", "attn_q"},
                                                         {"self_attn.k_proj", "attn_k"},
                                                         {"self_attn.v_proj", "attn_v"},
                                                         {"self_attn.o_proj", "attn_output"},
                                                         {"self_attn.q_norm", "attn_q_norm"},
                                                         {"self_attn.k_norm", "attn_k_norm"},
                                                         {"input_layernorm", "attn_norm"},
                                                         {"post_attention_layernorm", "ffn_norm"},
                                                         {"mlp.gate_proj", "ffn_gate"},
                                                         {"mlp.up_proj", "ffn_up"},
                                                         {"mlp.down_proj", "ffn_down"}};
    for (FileTensor& tensor : tensors)
      for (const auto& [from, to] : names)
        if (const std::size_t at = tensor.name.find(from); at != std::string::npos)
          tensor.name.replace(at, std::string(from).size(), to);
  });
  compare(call(renamed, "qwen3", ""), "qwen3.last_hidden");
}

BOOST_AUTO_TEST_CASE(scaled_fp8_files_mean_the_numbers_that_they_stand_for) {
  const auto states = [&](auto member) {
    const auto path = changed("qwen2.5", [&](std::vector<FileTensor>& tensors) {
      tensors = ScaledMatrices(tensors).*member;
    });
    return call(path, "qwen2.5", config("qwen2.5")).floats("model.outputs", "last_hidden.0");
  };
  const double error =
      relative_error(states(&ScaledMatrices::scaled), states(&ScaledMatrices::plain));
  BOOST_TEST(error < kLanguageTolerance, "relative error " << error);
}

BOOST_AUTO_TEST_CASE(what_is_missing_wrong_or_unknown_is_said) {
  const auto refusal = [&](const std::filesystem::path& path, const std::string& config = "") {
    return engine_refusal([&] { call(path, "qwen3", config); });
  };
  const auto says = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  using Tensors = std::vector<FileTensor>;
  const auto without = [&](const std::string& end) {
    return changed("qwen3", [&](Tensors& tensors) {
      std::erase_if(tensors, [&](const FileTensor& t) { return t.name.ends_with(end); });
    });
  };
  says(refusal(without("layers.1.mlp.down_proj.weight")),
       {"changed.safetensors", "'model.layers.1.mlp.down_proj.weight'", "layer.1", "missing",
        "(24, 40)"});
  says(refusal(without("_norm.weight")), {"width 24", "no text encoder that is known", "Qwen3"});
  const auto more_keys = changed("qwen3", [](Tensors& tensors) {
    for (FileTensor& tensor : tensors)
      if (tensor.name == "model.layers.2.self_attn.k_proj.weight") {
        tensor.shape[0] = 48;
        tensor.bytes.resize(bytes_of(tensor));
      }
  });
  says(refusal(more_keys), {"'model.layers.2.self_attn.k_proj.weight'", "48 rows", "expected 32"});
  says(refusal(file("qwen3"), R"({"hidden_layers": [4]})"), {"one of them 4", "up to 12", "of 3"});
  says(refusal(file("qwen3"), R"({"head_dim": 10})"), {"width 64", "heads of 10"});
}

BOOST_AUTO_TEST_SUITE_END()
