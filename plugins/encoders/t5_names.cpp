#include "t5_names.h"

#include "plugins/blocks/slots.h"

namespace heddle::encoders {
namespace {

struct T5Part {
  std::string_view part, transformers, llama;
};
constexpr T5Part kT5Parts[] = {
    {"q", "layer.0.SelfAttention.q", "attn_q"},
    {"k", "layer.0.SelfAttention.k", "attn_k"},
    {"v", "layer.0.SelfAttention.v", "attn_v"},
    {"o", "layer.0.SelfAttention.o", "attn_o"},
    {"bias", "layer.0.SelfAttention.relative_attention_bias", "attn_rel_b"},
    {"norm1", "layer.0.layer_norm", "attn_norm"},
    {"norm2", "layer.1.layer_norm", "ffn_norm"},
    {"gate", "layer.1.DenseReluDense.wi_0", "ffn_gate"},
    {"up", "layer.1.DenseReluDense.wi_1", "ffn_up"},
    {"only", "layer.1.DenseReluDense.wi", "ffn_up"},
    {"down", "layer.1.DenseReluDense.wo", "ffn_down"},
};

}  // namespace

std::optional<T5Names> T5Names::find(const Checkpoint& file) {
  if (const auto prefix =
          blocks::prefix_before(file, "encoder.block.0.layer.0.SelfAttention.q.weight"))
    return T5Names(file, Layout::transformers, *prefix);
  if (const auto prefix = blocks::prefix_before(file, "enc.blk.0.attn_q.weight"))
    return T5Names(file, Layout::llama, *prefix);
  return std::nullopt;
}

std::string T5Names::tokens() const {
  if (layout_ == Layout::llama) return prefix_ + "token_embd.weight";
  // Named once or twice: T5 shares its table between encoder and decoder.
  const std::string own = prefix_ + "encoder.embed_tokens.weight";
  return file_.has(own) ? own : prefix_ + "shared.weight";
}

std::string T5Names::final_norm() const {
  return prefix_ +
         (layout_ == Layout::llama ? "enc.output_norm.weight" : "encoder.final_layer_norm.weight");
}

std::string T5Names::in_layer(int index, std::string_view part) const {
  for (const T5Part& row : kT5Parts)
    if (row.part == part)
      return prefix_ + (layout_ == Layout::llama ? "enc.blk." : "encoder.block.") +
             std::to_string(index) + "." +
             std::string(layout_ == Layout::llama ? row.llama : row.transformers) + ".weight";
  throw Error(HEDDLE_INTERNAL, "a layer of T5 has no part '" + std::string(part) + "'");
}

int T5Names::layers() const {
  return blocks::layer_count(file_,
                             prefix_ + (layout_ == Layout::llama ? "enc.blk." : "encoder.block."));
}

}  // namespace heddle::encoders
