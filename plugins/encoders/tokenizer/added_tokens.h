// Tokens that are found in a text before the model sees it: special ones such as "<|endoftext|>"
// and those that somebody added later. Follows the added vocabulary of the `tokenizers` package:
// tokens that are not "normalized" are searched in the raw text, the others, themselves normalised,
// in the normalised rest; the leftmost longest match counts. Immutable, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "normalizer.h"
#include "piece_trie.h"
#include "regex.h"
#include "sink.h"
#include "vocabulary.h"
#include "work.h"

namespace heddle::text {

struct AddedToken {
  std::string content;       // valid UTF-8
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool normalized = false;   // searched in the normalised text
  bool special = false;
};

class AddedTokens {
 public:
  struct Segment {
    std::string_view text;
    std::size_t begin = 0;           // byte where it starts in the text that was split
    std::optional<std::int32_t> id;  // an added token, or text for the next stage
  };

  AddedTokens() = default;

  // A token that `model` has gets the id there, another one the next free id. `where` names the
  // file. Throws TextError for a token of more than 4096 bytes and when there is no free id.
  AddedTokens(std::vector<AddedToken> tokens, const Vocabulary& model, const Normalizer& normalizer,
              const std::string& where);

  // Segments in order, none empty. REQUIRES: valid UTF-8. Throws Cancelled.
  void split_raw(std::string_view text, Work& work, Sink<const Segment&> out) const {
    split(text, raw_, work, out);
  }
  void split_normalized(std::string_view text, Work& work, Sink<const Segment&> out) const {
    split(text, normalized_, work, out);
  }

  std::optional<std::int32_t> find(std::string_view content) const { return ids_.find(content); }
  // Every token with its id.
  template <class Found>
  void each(Found&& found) const {
    for (std::size_t i = 0; i < tokens_.size(); ++i) found(tokens_[i], token_ids_[i]);
  }
  std::int32_t max_id() const { return max_id_; }  // -1: no tokens

 private:
  std::int32_t add(const AddedToken& token, const Vocabulary& model, const std::string& where);
  void split(std::string_view text, const PieceTrie& trie, Work& work,
             Sink<const Segment&> out) const;
  bool stands_alone(std::string_view text, Span match) const;

  std::vector<AddedToken> tokens_;
  std::vector<std::int32_t> token_ids_;  // of `tokens_`
  Vocabulary ids_;
  std::int32_t max_id_ = -1;
  PieceTrie raw_, normalized_;  // to indices of `tokens_`
  std::vector<Regex> word_;     // one word character; only there when a token is single_word
};

}  // namespace heddle::text
