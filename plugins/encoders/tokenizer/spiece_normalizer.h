// How SentencePiece itself prepares a text: the character map first, then its own rules about white
// space, while user-defined symbols pass untouched. Immutable, any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "charsmap.h"
#include "piece_trie.h"

namespace heddle::text {

struct SpieceRules {
  std::shared_ptr<const Charsmap> map;  // may be null: no map
  PieceTrie user_defined;               // symbols that are kept as they are
  bool add_dummy_prefix = true;         // a space in front of (or after) the text
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;  // spaces become U+2581
  bool whitespace_as_suffix = false;
};

// REQUIRES: valid UTF-8, and gives it.
std::string spiece_normalized(const SpieceRules& rules, std::string_view text);

}  // namespace heddle::text
