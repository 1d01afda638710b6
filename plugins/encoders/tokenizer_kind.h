// The tokenizers of this plugin as heddle.field.tokenizers/0: from a folder with a tokenizer.json,
// a spiece.model, or a vocab.json and a merges.txt (the first of these that is there), and its
// tokenizer_config.json; from the tensor 'spiece_model', 'tekken_model' or 'tokenizer_json' of a
// model's file; and those that ship with the plugin. What is big is read when the first text is
// encoded. Any thread.
#pragma once

#include <string_view>

#include <heddle/diffusion/tokenizer.h>
#include <heddle/value.hpp>

namespace heddle::encoders {

struct Tokenizers {
  static constexpr std::string_view kind = HEDDLE_TOKENIZERS;
  static const heddle_list* list();
};

}  // namespace heddle::encoders
