// Reads a `tokenizer.json`, the file of the `tokenizers` package: BPE and Unigram models with the
// normalisers and pre-tokenisers listed in json_normalizer.h and json_pre_tokenizer.h. A part of
// another type is an error that names it. `truncation`, `padding` and `decoder` are not read:
// windows.h cuts and pads. Pure, any thread.
#pragma once

#include <string>
#include <string_view>

#include "json_view.h"
#include "tokenizer.h"

namespace heddle::text {

// `name` is how the user knows the file. Throws TextError. `packed`: the vocabulary in the form of
// packed_model.h, of a file that names the type of its model only.
Tokenizer read_tokenizer_json(JsonView root, const std::string& name, std::string_view packed = {});

}  // namespace heddle::text
