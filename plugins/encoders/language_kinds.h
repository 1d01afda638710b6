// plugins/encoders/language_kinds.h - what sets decoder-only language models apart: a table of
// settings, and which of its rows a file is. Functions of names and shapes only; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <heddle/abi/ops.h>

#include "language_names.h"

namespace heddle::encoders {

// Layers that see the tokens just before each one alone.
struct LanguageWindows {
  std::int64_t size = 0;  // tokens that one sees, itself among them; 0: all, in every layer
  int full_every = 0;     // the last of so many layers sees all; 0: none does
  // In these layers the base of the rotation, where it is another; in the others then positions are
  // divided by `rope_factor`.
  double near_theta = 0, rope_factor = 1;
};

// Over 15 members: a row of a table, most of it with a default.
struct LanguageKind {
  std::string_view name;      // "qwen2.5", also that of the vocabulary
  std::string_view types[2];  // of a config: its model_type
  std::int64_t head;          // elements of a head; 0: the length of the norm of queries
  double theta, eps;          // theta: the base of the rotation
  heddle_activation activation = HEDDLE_ACT_SILU;
  double norm_shift = 0;          // norms multiply by this + weight
  bool scales_embedding = false;  // by the root of the width
  double cap = 0;                 // of attention scores (heddle_attention_attrs); 0: none
  LanguageWindows windows = {};
  double query_size = 0;  // scores are divided by its root; 0: elements of a head
  // Pairs of a head that turn with time, row and column; all 0: it sees no pictures.
  std::array<std::int64_t, 3> sections = {};
  bool interleaved = false;    // these pairs take turns: time, row, column, time ...
  double logit_cap = 0;        // of the scores of the next token, as `cap`
  double turned_share = 1;     // of a head, its first elements: those that positions turn
  bool gates_results = false;  // behind a head's query stand gates of what it sees
  // What stands in the place of tokens may be given (the inputs "pictures" and "is_text"), though
  // it has no vision tower of its own.
  bool takes_states = false;
  bool may_be_cut = false;  // files may end at the layers that are read, without the final norm
};

// Of this file, by the config's model_type, else by the modules that it has. Throws
// HEDDLE_UNSUPPORTED, naming those that are known.
const LanguageKind& language_kind(const Checkpoint& file, const LanguageNames& names,
                                  const Value& config);

}  // namespace heddle::encoders
