// plugins/encoders/language_model.h - decoder-only language models that encode texts, one family
// for all: Qwen2.5-VL (its text part), Qwen3, Gemma 2, Mistral Small (language_kinds.h).
//
// Input    ids          (B, S) i32    loop-invariant  token ids; no padding, as nothing is masked
//          unpadded     (n) i32       loop-invariant  only with "masks_padding": true in the
//          config:
//                                                     ids from n on are padding, which nobody sees;
//                                                     read by its shape alone
// Output   last_hidden  (B, S, n D)   f32
//
// Which states these are the config says: "hidden_layers", beside whatever "text_config" has, a
// list of up to four numbers of layers, gives the states after so many layers, without the final
// norm, side by side; what lies behind the last of them is not built. Without it, those after all
// layers, under the final norm (of a Mistral file that ends before, those after its last layer).
//
// Source of the architecture: transformers' Qwen2Model, Qwen3Model, Gemma2Model, MistralModel: RMS
// norms before attention and gated MLP, rotary embeddings, causal attention in groups of heads that
// share keys and values. Sizes are read off the tensors. The config may give "model_type",
// "head_dim", "rope_theta" and "rms_norm_eps" and "sliding_window", as config.json does, also in
// its "text_config". What else a file holds (the vision tower, lm_head) is not read. Only operands
// of matrix products are in the compute type (plugins/blocks/wide.h). Stateless, any thread.
#pragma once

#include "language_blocks.h"

#include <heddle/model.hpp>

namespace heddle::encoders {

struct LanguageModel {
  static constexpr Family family{"language_model", "text_encoder", 1,
                                 "decoder-only language models as text encoders"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::encoders
