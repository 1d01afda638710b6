// plugins/encoders/language_model.h - decoder-only language models that encode texts, one family
// for all: Qwen2.5-VL, Qwen3-VL and Qwen3.5 (their text parts), Qwen3, Gemma 2, 3 and 4,
// Mistral Small (language_kinds.h).
//
// Inputs   ids          (B, S) i32    loop-invariant  token ids; no padding, as nothing is masked
//          unpadded     (n) i32       loop-invariant  only with "masks_padding": true in the
//                                     config: ids from n on are padding, which nobody sees; read
//                                     by its shape alone. "padding_at", where the config has
//                                     it, is the position of all of them
//          pictures     (1, S, D)     optional, of kinds that see them and of Llama 3: what a
//                                     vision tower makes of pictures (vision_model.h,
//                                     deep_vision_model.h, clip_vision.h), in the rows where they
//                                     stand; elsewhere 0
//          is_text      (1, S, 1)     with it: 1 where the id counts, 0 where a picture stands
//          positions    (S, 3)        with it, not of Llama 3: time, row and column of each token
//          deep         (n, S, D)     with it, of Qwen3-VL: what is added behind each of the first
//                                     n layers, in these rows; elsewhere 0
// Output   last_hidden  (B, S, n D)   f32
//
// With "writes_texts": true in the config the model writes: B is 1, and every input changes at
// every step. Then it has
//          positions    (S, 3)        of every kind, not optional
//          kept.<i>     (1, C, 2 K d) optional: of layer i, keys and values of the tokens before,
//          of
//                                     which C have room; S is 1 with it
//          seen, near   (1, C + 1)    with it: f32, 0 at tokens that are seen, -1e30 at others; the
//                                     last is the token itself. `near`, of kinds with windows: in
//                                     the layers that have one
// Of Qwen3.5 each fourth layer has an attention; the others have instead
//          tail.<i>     (1, n - 1, C) optional: of a convolution over n tokens, C channels of the
//                                     last n - 1 before; S is 1 with it
//          state.<i>    (1, H, k, e)  with it: a matrix for each head
// which come out anew under the same names (delta_blocks.h).
// Outputs are kept.<i> (1, S, 2 K d), of its own tokens, and logits (1, V) f32, the scores of
// what comes behind the last token, made with lm_head, or where the file has none, with the table
// of tokens. Settings "kept_width" (2 K d), or "kept_widths" of each layer that keeps something,
// "window", "logit_cap" (of the scores; 0: none), "unwritten", tokens that it is not to write,
// "attention_every" (1 or none: all layers have one), and where not all have "tail_tokens",
// "tail_width", "state_heads", "state_depth" and "state_width". Gemma 4 is told of in
// gemma4_model.h.
//
// Which states these are the config says: "hidden_layers", beside whatever "text_config" has, a
// list of up to twelve numbers of layers, gives the states after so many layers, without the final
// norm, side by side; what lies behind the last of them is not built. "all_states": true gives the
// embedding and the states after each layer, the last under the final norm, side by side. Without
// both, those after all layers, under the final norm (of a Mistral file that ends before, those
// after its last layer).
//
// Source of the architecture: transformers' Qwen2Model, Qwen3Model, Qwen3VLTextModel, Gemma2Model,
// Gemma3TextModel, MistralModel, Qwen3_5TextModel: RMS norms before attention and gated MLP, rotary
// embeddings, causal attention in groups of heads that share keys and values. Sizes are read off
// the tensors. The config may give "model_type", "head_dim", "rope_theta", "rms_norm_eps",
// "sliding_window", "mrope_section" and "query_pre_attn_scalar", of Gemma 3 also
// "rope_local_base_freq", "rope_scaling", "rope_parameters" and "sliding_window_pattern", of
// Qwen3.5 "linear_key_head_dim" and "partial_rotary_factor", as config.json does, also in its
// "text_config". lm_head is read to write texts alone; its vision tower is a model of its own. Only
// operands of matrix products are in the compute type (plugins/blocks/wide.h). Stateless, any
// thread.
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
