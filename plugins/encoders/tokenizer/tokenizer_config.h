// What heddle needs of a `tokenizer_config.json`: the length that texts are cut or padded to and
// the names of the special tokens. Pure, any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "json_view.h"
#include "vocab_merges.h"

namespace heddle::text {

struct TokenizerConfig {
  std::optional<std::size_t> model_max_length;  // tokens; absent when missing or "very large"
  std::optional<std::string> begin, end, padding, unknown;

  ClipTokens clip_tokens() const;  // CLIP's defaults where a token is absent
};

// `name` is how the user knows the file. Throws TextError.
TokenizerConfig read_tokenizer_config(JsonView root, const std::string& name);

}  // namespace heddle::text
