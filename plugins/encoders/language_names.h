// plugins/encoders/language_names.h - what files call the tensors of a decoder-only language model:
// transformers' names ("model.layers.0.self_attn.q_proj.weight"; the text part of Qwen2.5-VL and
// Qwen3-VL also behind "language_model."), or those that llama.cpp gives gguf files
// ("blk.0.attn_q.weight"). Of a hybrid model, Qwen3.5, most layers have a gated delta rule in the
// place of an attention ("model.layers.0.linear_attn.in_proj_qkv.weight"); of these there are
// transformers' names alone. Functions of names only.
#pragma once

#include <heddle/model.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace heddle::encoders {

class LanguageNames {
 public:
  // Nothing when the file has no such model.
  static std::optional<LanguageNames> find(const Checkpoint& file);
  // Whether it is Qwen3.5 under llama.cpp's names, which find() does not know.
  static bool is_hybrid_gguf(const Checkpoint& file);
  // Of a file in which find() finds nothing. Throws what it is.
  [[noreturn]] static void refuse(const Checkpoint& file);

  std::string tokens() const;
  std::string final_norm() const;
  // What scores of the next token are made with; the table of tokens where a file has no other.
  std::string logits() const;
  // A module of a layer: "q", "k", "v", "o", "q_norm", "k_norm", "norm1", "after1", "norm2",
  // "after2", "gate", "up", "down", of Gemma 4 also "told_gate", "told_proj", "told_norm" and
  // "scalar", of layers with a delta rule "delta_qkv", "delta_z", "delta_a", "delta_b",
  // "delta_conv", "delta_norm", "delta_out"; without ".weight" and ".bias".
  std::string in_layer(int index, std::string_view module) const;
  // Of a layer with a delta rule: a tensor by its whole name, "A_log" or "dt_bias".
  std::string in_delta(int index, std::string_view tensor) const;
  // Whether the first layer with an attention has such a module with a weight.
  bool has(std::string_view module) const {
    return file_.has(in_layer(attention_layer(), module) + ".weight");
  }
  int layers() const;
  bool is_gguf() const { return layout_ == Layout::llama; }
  // Whether it is Gemma 4, each layer of which has a number that its states are multiplied by.
  bool is_gemma4() const;
  // What Gemma 4 has beside its layers: "embed_tokens_per_layer" and the like.
  std::string beside_layers(std::string_view module) const { return prefix_ + std::string(module); }
  bool is_hybrid() const { return attention_every_ > 1; }
  // Each so many'th layer has an attention, the others a delta rule; 1: all have one.
  int attention_every() const { return attention_every_; }
  // The first that has one.
  int attention_layer() const { return attention_every_ - 1; }

  // Every tensor that is a part of the language model by its module in transformers' names
  // ("model.layers.0.mlp.up_proj"), with "weight" or "bias", or, in "model.layers.0.linear_attn",
  // "A_log" or "dt_bias".
  void each_module(const std::function<void(const std::string& module, const char* kind,
                                            const std::string& tensor)>& found) const;

 private:
  enum class Layout { transformers, llama };
  LanguageNames(const Checkpoint& file, Layout layout, std::string prefix, int attention_every = 1)
      : file_(file),
        layout_(layout),
        prefix_(std::move(prefix)),
        attention_every_(attention_every) {}
  // A norm stands behind the attention, so that "post_attention_layernorm" is that one.
  bool norms_results() const;

  Checkpoint file_;
  Layout layout_;
  std::string prefix_;
  int attention_every_;
};

}  // namespace heddle::encoders
