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
#include "sink.h"
#include "vocabulary.h"
#include "work.h"

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

  // The ids of `text`. Time: length times the longest piece; memory: 2 bytes a byte, and some for
  // the longest piece. REQUIRES: valid UTF-8. Throws TextError when a character is unknown and the
  // model has no unknown piece, and Cancelled.
  void encode(std::string_view text, Work& work, Sink<std::int32_t> out) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  // The best way to cut a text up to some byte.
  struct Best {
    double score = 0;
    std::uint16_t last = 0;  // bytes of its last piece; 0: there is no way
  };
  std::vector<std::uint16_t> best_cuts(std::string_view text, Work& work) const;
  std::optional<std::int32_t> id_of(std::string_view cut) const;
  void offer(Best& target, std::size_t last, double score) const;
  double score_of(std::int32_t id, std::size_t length) const;
  void write_unknown(std::string_view run, Sink<std::int32_t> out) const;
  bool write_bytes(std::string_view run, Sink<std::int32_t> out) const;

  struct Scored {
    double score;
    PieceKind kind;
  };
  std::string where_;
  std::vector<Scored> pieces_;
  Vocabulary vocabulary_;
  PieceTrie trie_;
  std::size_t longest_ = 4;  // bytes of a piece, or of an unknown character
  std::optional<std::int32_t> unknown_;
  bool byte_fallback_;
  UnigramRules rules_;
  double max_score_ = 0, unknown_score_ = 0;
};

}  // namespace heddle::text
