// Reads a `spiece.model`, the file of SentencePiece, without protobuf: pieces, kinds and scores,
// the character map and the rules about white space. Unigram and BPE models; others are an error
// that names the type. Pure, any thread.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer.h"

namespace heddle::text {

// `bytes` is the whole file, read during the call; `name` is how the user knows it. Ids are those
// of the `sentencepiece` package; the suffix is the end piece if a unigram model has one. Throws
// TextError.
Tokenizer read_spiece(std::string_view bytes, const std::string& name);

}  // namespace heddle::text
