// Reads a `tekken.json`, the file of Mistral's tokenizers: bytes are merged by the ranks of what
// they make, special tokens come first. Pure, any thread.
#pragma once

#include <string>

#include "json_view.h"
#include "tokenizer.h"

namespace heddle::text {

// `name` is how the user knows the file. It puts nothing around a text: templates begin with "<s>".
// Throws TextError.
Tokenizer read_tekken(JsonView root, const std::string& name);

}  // namespace heddle::text
