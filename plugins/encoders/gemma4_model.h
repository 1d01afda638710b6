// plugins/encoders/gemma4_model.h - Gemma 4, which the family language_model builds: E2B, E4B, 12B
// and 31B, their text parts; gemma4_vision_model.h is what they see pictures with.
//
// Inputs and outputs are those of language_model.h, without padding and "positions" of pictures,
// which count on. In the place of each of a picture's tokens is the id 0. Models that are not told
// of tokens have
//          groups       (S)           optional, with pictures: f32, tokens of one number see each
//                                     other as far back as windows let them: a picture's; a text's
//                                     have each their own. As in ComfyUI in all layers; of 31B
//                                     transformers has it in those with windows alone
// A model that writes keeps states of its first "kept_layers" layers alone: the others see keys and
// values of these. Setting "kept_widths" lists how wide each is.
//
// Source of the architecture: transformers' Gemma4TextModel. Layers see through windows, but some
// that see all tokens, with larger heads, of which a part turns, and, where a file has none of
// their matrices, keys for values. In E2B and E4B the last layers share keys and values of the last
// ones of their kind before, and each layer is told of each token by a table of its own. Sizes are
// read off the tensors; so are kinds of layers, by the size of their heads, and which of them
// share, but of E4B, whose width says so. The config may give "layer_types",
// "num_kv_shared_layers", "sliding_window", "rope_parameters", "rms_norm_eps",
// "use_bidirectional_attention" and "final_logit_softcapping", as config.json does. Mixtures of
// experts and gguf files are refused. Stateless, any thread.
#pragma once

#include <heddle/model.hpp>

#include "language_names.h"

namespace heddle::encoders {

// text: the part of the config that is of texts; use: all of it. Throws HEDDLE_UNSUPPORTED or
// HEDDLE_INVALID_ARGUMENT for what it cannot build, with the file.
void build_gemma4(const Checkpoint& file, const LanguageNames& names, const Value& text,
                  const Value& use, Blocks& graph);

}  // namespace heddle::encoders
