// A text becomes token ids. One class for every tokenizer this library reads: added tokens, then a
// normaliser, a pre-tokeniser and a model; what differs is which parts a file asks for. Made by
// read_tokenizer_json() (tokenizer_json.h), read_spiece() (spiece.h) or read_clip_files()
// (vocab_merges.h). Cheap to copy: copies share their parts, which never change, so any thread may
// encode.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "added_tokens.h"
#include "byte_level_bpe.h"
#include "normalizer.h"
#include "pre_tokenizer.h"
#include "sink.h"
#include "unigram.h"
#include "work.h"

namespace heddle::text {

class Tokenizer {
 public:
  using Model = std::variant<ByteLevelBpe, Unigram>;

  struct Parts {
    AddedTokens added;
    Normalizer normalizer;
    PreTokenizer pre_tokenizer;
    Model model;
    std::vector<std::int32_t> prefix, suffix;  // what the file's post-processor puts around a text
    std::vector<std::int32_t> silent = {};     // pieces of the model that stand for no text
  };

  explicit Tokenizer(Parts parts) : parts_(std::make_shared<const Parts>(std::move(parts))) {}

  // The ids of a text, without prefix, suffix, truncation and padding. Malformed UTF-8 counts as
  // U+FFFD. Near linear in the length of the text, in time and in memory. Throws TextError when the
  // file's patterns backtrack too much on this text, or when it has unknown characters and the
  // model no unknown token, and Cancelled.
  void encode(std::string_view utf8, Work& work, Sink<std::int32_t> out) const;
  std::vector<std::int32_t> encode(std::string_view utf8) const;

  const std::vector<std::int32_t>& prefix() const { return parts_->prefix; }
  const std::vector<std::int32_t>& suffix() const { return parts_->suffix; }

  // The id of a piece, exactly as the vocabulary writes it: "</s>", "cat</w>".
  std::optional<std::int32_t> find(std::string_view piece) const;

  // Ids of the vocabulary that stand for no text, such as the end: not those of added tokens.
  const std::vector<std::int32_t>& silent() const { return parts_->silent; }

  const AddedTokens& added() const { return parts_->added; }
  const Vocabulary& vocabulary() const;
  // Whether pieces are written in the 256 characters of byte-level BPE.
  bool is_byte_level() const { return parts_->pre_tokenizer.is_byte_level(); }

  // One more than the largest id that encode(), prefix() and suffix() can give: rows that an
  // embedding needs.
  std::size_t id_count() const;

 private:
  void encode_text(TextPiece text, Work& work, Sink<std::int32_t> out) const;

  std::shared_ptr<const Parts> parts_;
};

}  // namespace heddle::text
