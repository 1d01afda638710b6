// The unigram language model: of all ways to cut a text into pieces, the one with the largest sum
// of scores, found by Viterbi's algorithm over a trie of the pieces. Two programs define it, and
// they differ in small ways (UnigramRules). Immutable, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "piece_trie.h"
#include "vocabulary.h"

namespace heddle::text {

enum class PieceKind {
  kNormal,       // found in texts
  kUnknown,      // not found in texts
  kControl,      // not found in texts
  kUserDefined,  // found in texts, and preferred to every other way of cutting
  kUnused,       // not found in texts
  kByte,         // not found in texts, written by byte fallback
};

struct UnigramPiece {
  std::string text;  // any bytes; an empty piece is never found
  double score = 0;  // logarithm of its probability
  PieceKind kind = PieceKind::kNormal;
};

enum class UnigramRules {
  kTokenizers,  // sums in double; every piece is found in texts; a run of unknown characters is one
                // token
  kSentencePiece,  // sums in float; kinds of pieces count; a run of unknown characters is one token
};

struct UnigramOptions {
  std::vector<UnigramPiece> pieces;     // by id
  std::optional<std::int32_t> unknown;  // id; REQUIRES: in range
  bool byte_fallback = false;           // unknown characters as byte pieces
  UnigramRules rules = UnigramRules::kTokenizers;
};

class Unigram {
 public:
  // `where` names the file. Throws TextError for an empty list, an empty piece or a score that is
  // not a number.
  Unigram(UnigramOptions options, const std::string& where);

  // Appends the ids of `text`. Time: length times the longest piece. REQUIRES: valid UTF-8. Throws
  // TextError when a character is unknown and the model has no unknown piece.
  void encode(std::string_view text, std::vector<std::int32_t>& out) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  struct Best {
    double score = 0;
    std::int64_t from = -1;  // byte where the last piece starts, -1: not reached
    std::int32_t id = -1;    // -1: unknown, and no unknown piece
  };
  struct Cut {
    std::size_t begin, end;
    std::int32_t id;
  };
  std::vector<Cut> best_cuts(std::string_view text) const;
  void offer(Best& target, std::size_t from, std::int32_t id, double score) const;
  double score_of(std::int32_t id, std::size_t length) const;
  void append_unknown(std::string_view run, std::vector<std::int32_t>& out) const;
  bool append_bytes(std::string_view run, std::vector<std::int32_t>& out) const;

  struct Scored {
    double score;
    PieceKind kind;
  };
  std::string where_;
  std::vector<Scored> pieces_;
  Vocabulary vocabulary_;
  PieceTrie trie_;
  std::optional<std::int32_t> unknown_;
  bool byte_fallback_;
  UnigramRules rules_;
  double max_score_ = 0, unknown_score_ = 0;
};

}  // namespace heddle::text
