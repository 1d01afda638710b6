// Byte-pair encoding: a word is cut into characters, then the adjacent pair of the lowest rank is
// merged until no pair of the merge list is left. What is "byte level" about it is done before, by
// the pre-tokeniser. Follows the BPE model of the `tokenizers` package without dropout. Immutable,
// any thread.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sink.h"
#include "vocabulary.h"
#include "work.h"

namespace heddle::text {

enum class UnknownRuns { kEach, kFused };  // one unknown token a character, or one a run

struct BpeOptions {
  Vocabulary vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;  // by rank
  struct Ids {
    std::int32_t left, right, merged;
  };
  std::vector<Ids> merged_ids;     // the same of those that were not given as texts, behind them
  std::string continuing_prefix;   // in front of every character but a word's first
  std::string end_of_word_suffix;  // after a word's last character
  std::optional<std::string>
      unknown;  // token of characters that are not in the vocabulary; absent: they are dropped
  UnknownRuns unknown_runs = UnknownRuns::kEach;
  bool byte_fallback = false;  // unknown characters as byte pieces, if all of them are there
  bool ignore_merges = false;  // a word that is in the vocabulary is one token
};

class ByteLevelBpe {
 public:
  // `where` names the file. Throws TextError for a merge whose parts or result are not in the
  // vocabulary.
  ByteLevelBpe(BpeOptions options, const std::string& where);

  // The ids of one word. O(n log n) in its length, and 15 bytes for each of its characters.
  // REQUIRES: valid UTF-8. Throws TextError when it needs an unknown token that the vocabulary does
  // not have, and Cancelled.
  void encode(std::string_view word, Work& work, Sink<std::int32_t> out) const;

  const Vocabulary& vocabulary() const { return options_.vocabulary; }

 private:
  struct Merge {
    std::uint32_t rank;
    std::int32_t id;
  };
  const Merge* find_merge(std::int32_t left, std::int32_t right) const;
  std::vector<std::int32_t> characters(std::string_view word) const;
  bool append_bytes(std::string_view character, std::vector<std::int32_t>& out) const;

  class Merging;

  BpeOptions options_;  // without the merges
  std::string where_;
  std::optional<std::int32_t> unknown_;
  boost::unordered_flat_map<std::uint64_t, Merge> merges_;  // by (left id, right id)
  std::vector<std::int32_t> merged_ids_;                    // by rank
};

}  // namespace heddle::text
