#include "language_names.h"

#include "plugins/blocks/slots.h"

namespace heddle::encoders {
namespace {

struct LanguagePart {
  std::string_view module, transformers, llama;
};
constexpr LanguagePart kLanguageParts[] = {
    {"q", "self_attn.q_proj", "attn_q"},
    {"k", "self_attn.k_proj", "attn_k"},
    {"v", "self_attn.v_proj", "attn_v"},
    {"o", "self_attn.o_proj", "attn_output"},
    {"q_norm", "self_attn.q_norm", "attn_q_norm"},
    {"k_norm", "self_attn.k_norm", "attn_k_norm"},
    {"norm1", "input_layernorm", "attn_norm"},
    {"norm2", "post_attention_layernorm", "ffn_norm"},
    {"gate", "mlp.gate_proj", "ffn_gate"},
    {"up", "mlp.up_proj", "ffn_up"},
    {"down", "mlp.down_proj", "ffn_down"},
};
// Of models with norms behind attention and MLP, where they have other names.
constexpr LanguagePart kNormedResults[] = {
    {"after1", "post_attention_layernorm", "post_attention_norm"},
    {"norm2", "pre_feedforward_layernorm", "ffn_norm"},
    {"after2", "post_feedforward_layernorm", "post_ffw_norm"},
};

// Of Gemma 4.
constexpr LanguagePart kToldParts[] = {
    {"told_gate", "per_layer_input_gate", "inp_gate"},
    {"told_proj", "per_layer_projection", "proj"},
    {"told_norm", "post_per_layer_input_norm", "post_norm"},
    {"scalar", "layer_scalar", "layer_output_scale"},
};
constexpr const char* kBesideLayers[] = {"embed_tokens_per_layer", "per_layer_model_projection",
                                         "per_layer_projection_norm"};

// Of layers with a delta rule, in the place of those of an attention.
constexpr LanguagePart kDeltaParts[] = {
    {"delta_qkv", "linear_attn.in_proj_qkv", ""}, {"delta_z", "linear_attn.in_proj_z", ""},
    {"delta_a", "linear_attn.in_proj_a", ""},     {"delta_b", "linear_attn.in_proj_b", ""},
    {"delta_conv", "linear_attn.conv1d", ""},     {"delta_norm", "linear_attn.norm", ""},
    {"delta_out", "linear_attn.out_proj", ""},
};
constexpr const char* kDeltaTensors[] = {"A_log", "dt_bias"};

constexpr std::string_view kFirstQueries = "layers.0.self_attn.q_proj.weight",
                           kFirstDelta = "layers.0.linear_attn.in_proj_qkv.weight";
// Of the published models. A file in which no layer has an attention lacks those.
constexpr int kPublishedEvery = 4;
constexpr const char* kPrefixes[] = {"model.", "model.language_model.", "language_model.model.",
                                     ""};

}  // namespace

std::optional<LanguageNames> LanguageNames::find(const Checkpoint& file) {
  // A vision tower's layers have no gated MLP of this name before an embedding of tokens.
  for (const char* prefix : kPrefixes)
    if (file.has(prefix + std::string(kFirstQueries)) &&
        file.has(prefix + std::string("embed_tokens.weight")))
      return LanguageNames(file, Layout::transformers, prefix);
  for (const std::string prefix : kPrefixes) {
    if (!file.has(prefix + std::string(kFirstDelta)) || !file.has(prefix + "embed_tokens.weight"))
      continue;
    const int layers = blocks::layer_count(file, prefix + "layers.");
    for (int i = 1; i < layers; ++i)
      if (file.has(prefix + "layers." + std::to_string(i) + ".self_attn.q_proj.weight"))
        return LanguageNames(file, Layout::transformers, prefix, i + 1);
    return LanguageNames(file, Layout::transformers, prefix, kPublishedEvery);
  }
  if (file.has("blk.0.attn_q.weight") && file.has("blk.0.ffn_gate.weight") &&
      file.has("token_embd.weight"))
    return LanguageNames(file, Layout::llama, "");
  return std::nullopt;
}

bool LanguageNames::is_hybrid_gguf(const Checkpoint& file) {
  return file.meta("general.architecture").value_or("") == "qwen35" ||
         (file.has("blk.0.ssm_conv1d.weight") && file.has("token_embd.weight"));
}

void LanguageNames::refuse(const Checkpoint& file) {
  if (!is_hybrid_gguf(file))
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no language model");
  throw Error(
      HEDDLE_UNSUPPORTED,
      file.path() +
          ": this is Qwen3.5 as a gguf file, which is not read. Take a file in "
          "safetensors, such as qwen3.5_9b_qwen_image_2.1_pe_t2i.int8_convrot.safetensors.");
}

bool LanguageNames::norms_results() const {
  return file_.has(prefix_ + (is_gguf() ? "blk.0.post_ffw_norm.weight"
                                        : "layers.0.post_feedforward_layernorm.weight"));
}

bool LanguageNames::is_gemma4() const {
  return is_gguf() ? file_.meta("general.architecture").value_or("") == "gemma4"
                   : file_.has(in_layer(0, "scalar"));
}

std::string LanguageNames::tokens() const {
  return prefix_ + (is_gguf() ? "token_embd.weight" : "embed_tokens.weight");
}

std::string LanguageNames::final_norm() const {
  return prefix_ + (is_gguf() ? "output_norm.weight" : "norm.weight");
}

std::string LanguageNames::logits() const {
  const std::string root = prefix_.starts_with("language_model.") ? "language_model." : "",
                    name = is_gguf() ? "output.weight" : root + "lm_head.weight";
  return file_.has(name) ? name : tokens();
}

std::string LanguageNames::in_layer(int index, std::string_view module) const {
  const auto named = [&](const LanguagePart& part) {
    return prefix_ + (is_gguf() ? "blk." : "layers.") + std::to_string(index) + "." +
           std::string(is_gguf() ? part.llama : part.transformers);
  };
  for (const LanguagePart& part : kNormedResults)
    if (part.module == module && (norms_results() || module != "norm2")) return named(part);
  for (const LanguagePart& part : kLanguageParts)
    if (part.module == module) return named(part);
  for (const LanguagePart& part : kToldParts)
    if (part.module == module) return named(part);
  for (const LanguagePart& part : kDeltaParts)
    if (part.module == module) return named(part);
  throw Error(HEDDLE_INTERNAL,
              "a layer of a language model has no module '" + std::string(module) + "'");
}

std::string LanguageNames::in_delta(int index, std::string_view tensor) const {
  return prefix_ + "layers." + std::to_string(index) + ".linear_attn." + std::string(tensor);
}

int LanguageNames::layers() const {
  return blocks::layer_count(file_, prefix_ + (is_gguf() ? "blk." : "layers."));
}

void LanguageNames::each_module(
    const std::function<void(const std::string&, const char*, const std::string&)>& found) const {
  found("model.embed_tokens", "weight", tokens());
  found("model.norm", "weight", final_norm());
  for (const char* module : kBesideLayers)
    if (const std::string tensor = beside_layers(module) + ".weight"; file_.has(tensor))
      found("model." + std::string(module), "weight", tensor);
  const bool normed = norms_results();
  const int count = layers();
  for (int index = 0; index < count; ++index) {
    const auto tell = [&](const LanguagePart& part) {
      const std::string module = in_layer(index, part.module);
      for (const char* kind : {"weight", "bias"})
        if (const std::string tensor = module + "." + kind; file_.has(tensor))
          found("model.layers." + std::to_string(index) + "." + std::string(part.transformers),
                kind, tensor);
    };
    for (const LanguagePart& part : kLanguageParts)
      if (!normed || part.module != "norm2") tell(part);
    if (is_hybrid()) {
      for (const LanguagePart& part : kDeltaParts) tell(part);
      for (const char* name : kDeltaTensors)
        if (const std::string tensor = in_delta(index, name); file_.has(tensor))
          found("model.layers." + std::to_string(index) + ".linear_attn", name, tensor);
    }
    if (!normed) continue;
    for (const LanguagePart& part : kNormedResults) tell(part);
    for (const LanguagePart& part : kToldParts) tell(part);
    if (const std::string scalar = in_layer(index, "scalar"); file_.has(scalar))
      found("model.layers." + std::to_string(index), "layer_scalar", scalar);
  }
}

}  // namespace heddle::encoders
