// What the model families say of files that lack a tensor, hold one of another shape, or are of
// another kind: the file, the tensor, both shapes. Header-only copies of the random models.
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/true_files.h"

using namespace heddle::test;

namespace {

struct Damaged {
  ModelProbe probe;
  TemporaryFolder folder;

  static std::filesystem::path random(const std::string& name) {
    return tests_folder() / "plugins/goldens/random" / (name + ".safetensors");
  }

  // The headers of a random model without one tensor, or with another shape for it.
  std::filesystem::path copy(const std::string& model, const std::string& tensor,
                             const std::vector<std::int64_t>& shape = {}) const {
    std::vector<FileTensor> tensors;
    bool found = false;
    const TensorFile file(random(model));
    for (const auto& [name, entry] : file.entries()) {
      found = found || name == tensor;
      if (name == tensor && shape.empty()) continue;
      tensors.push_back({name, entry.dtype, name == tensor ? shape : entry.shape});
    }
    if (!found) tensors.push_back({tensor, "F32", shape});
    const std::filesystem::path path = folder / "damaged.safetensors";
    write_header_only(path, tensors);
    return path;
  }

  std::string refusal(const std::filesystem::path& model, const char* role,
                      const std::string& config = "", const char* prefix = "flux.") {
    return engine_refusal([&] { probe.call({model, role, config, random("expected"), prefix}); });
  }
};

// The message names all of these.
void check_says(const std::string& message, std::initializer_list<const char*> words) {
  for (const char* word : words)
    BOOST_TEST(message.find(word) != std::string::npos, "'" << word << "' is not in: " << message);
}

constexpr const char* kModel = "diffusion_model";

}  // namespace

BOOST_FIXTURE_TEST_SUITE(damaged_files, Damaged)

BOOST_AUTO_TEST_CASE(a_missing_tensor_is_named_with_its_file_block_and_shape) {
  check_says(refusal(copy("flux_original", "double_blocks.1.img_attn.proj.weight"), kModel),
             {"damaged.safetensors", "'double_blocks.1.img_attn.proj.weight'", "double.1",
              "missing", "(40, 40)"});
  check_says(refusal(copy("flux_diffusers", "single_transformer_blocks.0.proj_mlp.bias"), kModel),
             {"'single_transformer_blocks.0.proj_mlp.bias'", "missing", "(160)"});
  check_says(refusal(copy("clip", "text_model.encoder.layers.1.self_attn.v_proj.bias"),
                     "text_encoder", R"({"num_attention_heads": 2})"),
             {"'text_model.encoder.layers.1.self_attn.v_proj.bias'", "missing", "(32)"});
  check_says(
      refusal(copy("t5", "encoder.block.1.layer.1.DenseReluDense.wi_1.weight"), "text_encoder"),
      {"'encoder.block.1.layer.1.DenseReluDense.wi_1.weight'", "missing", "(40, 24)"});
  check_says(refusal(copy("vae_original", "decoder.mid.attn_1.k.weight"), "vae.decoder",
                     R"({"norm_num_groups": 2})"),
             {"'decoder.mid.attn_1.k.weight'", "missing", "(8, 8, 1, 1)"});
}

BOOST_AUTO_TEST_CASE(a_wrong_shape_is_given_beside_the_expected_one) {
  check_says(refusal(copy("flux_original", "single_blocks.1.linear1.weight", {270, 40}), kModel),
             {"'single_blocks.1.linear1.weight'", "(270, 40)", "(280, 40)"});
  check_says(
      refusal(copy("flux_diffusers", "transformer_blocks.0.attn.to_k.weight", {30, 40}), kModel),
      {"'transformer_blocks.0.attn.to_k.weight'", "(30, 40)", "(40, 40)"});
  check_says(refusal(copy("flux_diffusers", "norm_out.linear.bias", {60}), kModel),
             {"'norm_out.linear.bias'", "(60)", "(80)"});
  check_says(refusal(copy("vae_diffusers", "decoder.conv_out.bias", {4}), "vae.decoder",
                     R"({"norm_num_groups": 2})"),
             {"'decoder.conv_out.bias'", "(4)", "(3)"});
}

BOOST_AUTO_TEST_CASE(more_axes_than_a_tensor_can_have_are_refused_with_file_and_tensor) {
  check_says(refusal(copy("t5", "stray", {1, 1, 1, 1, 1, 1, 1, 1, 1}), "text_encoder"),
             {"damaged.safetensors: tensor 'stray'", "at most 8 axes, got 9"});
}

// Names alone say how often sides are halved: more often than a number has bits.
BOOST_AUTO_TEST_CASE(more_halvings_than_any_autoencoder_has_are_refused) {
  const auto refused = [&](std::vector<FileTensor> tensors, const char* config,
                           const std::string& list, int first, const std::string& conv,
                           std::int64_t width) {
    for (int i = first; i < first + 70; ++i) {
      const std::string at = list + std::to_string(i) + conv;
      tensors.push_back({at + "weight", "F32", {width, width, 3, 3}});
      tensors.push_back({at + "bias", "F32", {width}});
    }
    const std::filesystem::path path = folder / "damaged.safetensors";
    write_header_only(path, tensors);
    check_says(refusal(path, "vae.encoder", config),
               {"damaged.safetensors", "halves the sides of pictures 7", "at most 16"});
  };
  std::vector<FileTensor> tensors;
  const TensorFile file(random("vae_original"));
  for (const auto& [name, entry] : file.entries())
    tensors.push_back({name, entry.dtype, entry.shape});
  refused(std::move(tensors), R"({"norm_num_groups": 2})", "encoder.down.", 2, ".downsample.conv.",
          8);
  refused(seeded_model("qwen_image.vae"), "", "encoder.downsamples.", 7, ".resample.1.", 16);
}

BOOST_AUTO_TEST_CASE(more_changes_of_size_than_any_autoencoder_of_ltx_has_are_refused) {
  std::vector<FileTensor> tensors = seeded_model("vae", false, "ltxv_vae");
  const std::string list = "encoder.down_blocks.", last = "encoder.conv_out.conv.weight";
  int first = 0;
  std::int64_t width = 0;
  for (const FileTensor& tensor : tensors) {
    if (tensor.name == last) width = tensor.shape.at(1);
    if (tensor.name.starts_with(list))
      first = std::max(first, std::stoi(tensor.name.substr(list.size())) + 1);
  }
  BOOST_REQUIRE(width > 0 && first > 0);
  for (int i = first; i < first + 70; ++i)
    for (const char* name : {".conv.weight", ".conv.bias"}) {
      std::vector<std::int64_t> shape{width, width, 3, 3, 3};
      if (name == std::string_view(".conv.bias")) shape.resize(1);
      tensors.push_back({list + std::to_string(i) + name, "F32", shape});
    }
  const std::filesystem::path path = folder / "damaged.safetensors";
  write_header_only(path, tensors);
  check_says(refusal(path, "vae.encoder"),
             {"damaged.safetensors", "changes the size of videos", "of at most 16"});
}

// Llama 2, Mistral 7B, and a deeper one: of Llama 3's width, with its tensors.
BOOST_AUTO_TEST_CASE(language_models_of_llama_3s_width_are_told_apart) {
  const heddle::engine::Json told = heddle::engine::parse_json(
      read_text(tests_folder() / "plugins/goldens/true_files.json"), "true_files.json");
  const std::string last = "model.layers.31.";
  for (const std::int64_t tokens : {32000, 32768, 128256}) {
    const bool is_deeper = tokens == 128256;
    std::vector<FileTensor> tensors =
        true_tensors(*told.find("text_encoders/llava_llama3_fp8_scaled"));
    for (std::size_t i = 0, count = tensors.size(); i < count; ++i) {
      if (tensors[i].name.ends_with("embed_tokens.weight")) tensors[i].shape[0] = tokens;
      if (!is_deeper || !tensors[i].name.starts_with(last)) continue;
      FileTensor deeper = tensors[i];
      deeper.name.replace(0, last.size(), "model.layers.32.");
      tensors.push_back(std::move(deeper));
    }
    const std::filesystem::path path = folder / "damaged.safetensors";
    write_header_only(path, tensors);
    const std::string words = std::string("width 4096 with ") + (is_deeper ? "33" : "32") +
                              " layers and " + std::to_string(tokens) + " tokens";
    check_says(refusal(path, "text_encoder"), {"damaged.safetensors", words.c_str()});
  }
}

BOOST_AUTO_TEST_CASE(a_config_that_promises_more_layers_than_the_file_has_is_refused) {
  check_says(refusal(random("flux_original"), kModel, R"({"num_layers": 3})"),
             {"'double_blocks.2.img_mod.lin.weight'", "missing"});
}

BOOST_AUTO_TEST_CASE(rotary_axes_that_do_not_fit_the_head_are_refused_with_both_numbers) {
  check_says(refusal(random("flux_original"), kModel, R"({"axes_dims_rope": [16, 4, 4]})"),
             {"(16, 4, 4)", "20"});
}

BOOST_AUTO_TEST_CASE(a_config_of_another_model_is_refused_where_it_cannot_be_right) {
  check_says(refusal(random("clip"), "text_encoder"), {"32", "heads", "config.json"});
  check_says(refusal(random("clip"), "text_encoder",
                     R"({"num_attention_heads": 2, "hidden_act": "mish"})"),
             {"'mish'", "quick_gelu"});
  check_says(refusal(random("vae_original"), "vae.decoder"),
             {"8 channels", "32 groups", "config.json"});
}

BOOST_AUTO_TEST_CASE(a_file_of_another_kind_is_refused_with_the_families_that_were_asked) {
  check_says(refusal(random("t5"), kModel), {"t5.safetensors", "flux"});
  check_says(refusal(random("flux_original"), "text_encoder"), {"clip", "t5"});
}

BOOST_AUTO_TEST_CASE(more_tokens_than_positions_are_refused_with_both_numbers) {
  const std::filesystem::path path = folder / "inputs.safetensors";
  write_safetensors(path, {{"ids", "I32", {1, 13}, std::string(13 * 4, '\0')},
                           {"eos", "I32", {1}, std::string(4, '\0')}});
  check_says(
      engine_refusal([&] {
        probe.call({random("clip"), "text_encoder", R"({"num_attention_heads": 2})", path, ""});
      }),
      {"12 positions", "13 tokens"});
}

BOOST_AUTO_TEST_SUITE_END()
