// Reads a `tokenizer.json`, the file of the `tokenizers` package: BPE and Unigram models with the
// normalisers and pre-tokenisers listed in json_normalizer.h and json_pre_tokenizer.h. A part of
// another type is an error that names it. `truncation`, `padding` and `decoder` are not read:
// windows.h cuts and pads. Pure, any thread.
#pragma once

#include <string>

#include "json_view.h"
#include "tokenizer.h"

namespace heddle::text {

// `name` is how the user knows the file. Throws TextError.
Tokenizer read_tokenizer_json(JsonView root, const std::string& name);

}  // namespace heddle::text
