#include "t5_names.h"

#include "plugins/blocks/slots.h"

namespace heddle::encoders {
namespace {

struct T5Part {
  std::string_view part, transformers, llama, wan;
};
constexpr T5Part kT5Parts[] = {
    {"q", "layer.0.SelfAttention.q", "attn_q", "attn.q"},
    {"k", "layer.0.SelfAttention.k", "attn_k", "attn.k"},
    {"v", "layer.0.SelfAttention.v", "attn_v", "attn.v"},
    {"o", "layer.0.SelfAttention.o", "attn_o", "attn.o"},
    {"bias", "layer.0.SelfAttention.relative_attention_bias", "attn_rel_b",
     "pos_embedding.embedding"},
    {"norm1", "layer.0.layer_norm", "attn_norm", "norm1"},
    {"norm2", "layer.1.layer_norm", "ffn_norm", "norm2"},
    {"gate", "layer.1.DenseReluDense.wi_0", "ffn_gate", "ffn.gate.0"},
    {"up", "layer.1.DenseReluDense.wi_1", "ffn_up", "ffn.fc1"},
    {"only", "layer.1.DenseReluDense.wi", "ffn_up", "ffn.fc1"},
    {"down", "layer.1.DenseReluDense.wo", "ffn_down", "ffn.fc2"},
};

}  // namespace

std::optional<T5Names> T5Names::find(const Checkpoint& file) {
  if (const auto prefix =
          blocks::prefix_before(file, "encoder.block.0.layer.0.SelfAttention.q.weight"))
    return T5Names(file, Layout::transformers, *prefix);
  if (const auto prefix = blocks::prefix_before(file, "enc.blk.0.attn_q.weight"))
    return T5Names(file, Layout::llama, *prefix);
  if (const auto prefix = blocks::prefix_before(file, "blocks.0.pos_embedding.embedding.weight"))
    return T5Names(file, Layout::wan, *prefix);
  return std::nullopt;
}

std::string T5Names::tokens() const {
  if (layout_ == Layout::llama) return prefix_ + "token_embd.weight";
  if (layout_ == Layout::wan) return prefix_ + "token_embedding.weight";
  // Named once or twice: T5 shares its table between encoder and decoder.
  const std::string own = prefix_ + "encoder.embed_tokens.weight";
  return file_.has(own) ? own : prefix_ + "shared.weight";
}

std::string T5Names::final_norm() const {
  return prefix_ + (layout_ == Layout::llama ? "enc.output_norm.weight"
                    : layout_ == Layout::wan ? "norm.weight"
                                             : "encoder.final_layer_norm.weight");
}

std::string T5Names::layer_prefix() const {
  return prefix_ + (layout_ == Layout::llama ? "enc.blk."
                    : layout_ == Layout::wan ? "blocks."
                                             : "encoder.block.");
}

std::string T5Names::in_layer(int index, std::string_view part) const {
  for (const T5Part& row : kT5Parts)
    if (row.part == part)
      return layer_prefix() + std::to_string(index) + "." +
             std::string(layout_ == Layout::llama ? row.llama
                         : layout_ == Layout::wan ? row.wan
                                                  : row.transformers) +
             ".weight";
  throw Error(HEDDLE_INTERNAL, "a layer of T5 has no part '" + std::string(part) + "'");
}

int T5Names::layers() const { return blocks::layer_count(file_, layer_prefix()); }

bool T5Names::is_umt5() const { return file_.has(in_layer(1, "bias")); }

bool T5Names::is_byt5() const {
  constexpr std::int64_t kAttention = 384, kMostTokens = 4096;
  return !is_umt5() && file_.size(in_layer(0, "k"), 0) == kAttention &&
         file_.size(tokens(), 0) <= kMostTokens;
}

void T5Names::each_module(
    const std::function<void(const std::string&, const std::string&)>& found) const {
  for (const char* name : {"shared", "encoder.embed_tokens"}) found(name, tokens());
  found("encoder.final_layer_norm", final_norm());
  const int count = layers();
  for (int index = 0; index < count; ++index) {
    const bool is_gated = file_.has(in_layer(index, "gate"));
    for (const T5Part& row : kT5Parts) {
      const std::string tensor = in_layer(index, row.part);
      if (row.part == (is_gated ? "only" : "up") || !file_.has(tensor)) continue;
      found("encoder.block." + std::to_string(index) + "." + std::string(row.transformers), tensor);
    }
  }
}

}  // namespace heddle::encoders
