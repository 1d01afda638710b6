// Reads CLIP's older pair of files, `vocab.json` and `merges.txt`, which say nothing about
// normalising and cutting: that part is CLIP's own and stands here. Pure, any thread.
#pragma once

#include <string>
#include <string_view>

#include "json_view.h"
#include "tokenizer.h"

namespace heddle::text {

// From the folder's tokenizer_config.json; the defaults are CLIP's.
struct ClipTokens {
  std::string begin = "<|startoftext|>";
  std::string end = "<|endoftext|>";
  std::string padding = "<|endoftext|>";
  std::string unknown = "<|endoftext|>";
};

// The names are how the user knows the files. All four tokens have to be in the vocabulary; they
// are found in texts, too. Throws TextError.
Tokenizer read_clip_files(JsonView vocabulary, const std::string& vocabulary_name,
                          std::string_view merges, const std::string& merges_name,
                          const ClipTokens& tokens);

}  // namespace heddle::text
