// Reads a `spiece.model`, the file of SentencePiece, without protobuf: pieces, kinds and scores,
// the character map and the rules about white space. Unigram and BPE models; others are an error
// that names the type. Pure, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer.h"

namespace heddle::text {

// `bytes` is the whole file, read during the call; `name` is how the user knows it. Ids are those
// of the `sentencepiece` package; the suffix is the end piece if a unigram model has one. more, of
// BPE models: tokens that stand for no text, each with its piece's id, or the next one behind all
// pieces. Throws TextError.
Tokenizer read_spiece(std::string_view bytes, const std::string& name,
                      const std::vector<std::string>& more = {});

}  // namespace heddle::text
