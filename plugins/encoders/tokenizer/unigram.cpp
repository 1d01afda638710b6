#include "unigram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "text_error.h"
#include "utf8.h"

namespace heddle::text {
namespace {

constexpr double kUnknownPenalty = 10.0;    // below the worst piece, as both programs have it
constexpr double kUserDefinedMargin = 0.1;  // SentencePiece: length * best score - 0.1

constexpr std::size_t kLongestShown = 80;  // bytes of unknown characters in a message

constexpr std::size_t kLongestPiece =
    4096;  // bytes; time is text times this, and real pieces stay below 200

double as_float(double value) { return static_cast<double>(static_cast<float>(value)); }

bool is_found_in_texts(PieceKind kind) {
  return kind == PieceKind::kNormal || kind == PieceKind::kUserDefined;
}

}  // namespace

Unigram::Unigram(UnigramOptions options, const std::string& where)
    : where_(where),
      unknown_(options.unknown),
      byte_fallback_(options.byte_fallback),
      rules_(options.rules) {
  if (options.pieces.empty()) {
    throw TextError(where + ": the unigram model has no pieces. Download the file again.");
  }
  double min_score = std::numeric_limits<double>::infinity();
  // FLT_MIN, not the lowest float: SentencePiece starts there, so scores below it are no maximum.
  max_score_ = static_cast<double>(std::numeric_limits<float>::min());
  std::vector<PieceTrie::Entry> entries;
  pieces_.reserve(options.pieces.size());
  entries.reserve(options.pieces.size());
  vocabulary_.reserve(options.pieces.size());
  for (const UnigramPiece& piece : options.pieces) {
    const auto id = static_cast<std::int32_t>(pieces_.size());
    if (!std::isfinite(piece.score)) {
      throw TextError(where + ": the score of piece " + std::to_string(id) +
                      " is not a finite number. Download the file again.");
    }
    if (piece.text.size() > kLongestPiece) {
      throw TextError(where + ": piece " + std::to_string(id) + " has " +
                      std::to_string(piece.text.size()) + " bytes, at most " +
                      std::to_string(kLongestPiece) + " are accepted. Download the file again.");
    }
    const bool counts = rules_ == UnigramRules::kTokenizers || piece.kind == PieceKind::kNormal;
    if (counts) {
      min_score = std::min(min_score, piece.score);
      max_score_ = std::max(max_score_, piece.score);
    }
    if (rules_ == UnigramRules::kTokenizers || is_found_in_texts(piece.kind)) {
      entries.push_back({piece.text, id});
      longest_ = std::max(longest_, piece.text.size());
    }
    vocabulary_.add(piece.text, id);
    pieces_.push_back({piece.score, piece.kind});
  }
  if (!std::isfinite(min_score)) min_score = static_cast<double>(std::numeric_limits<float>::max());
  unknown_score_ = min_score - kUnknownPenalty;
  if (rules_ == UnigramRules::kSentencePiece) unknown_score_ = as_float(unknown_score_);
  trie_ = PieceTrie(entries);
}

double Unigram::score_of(std::int32_t id, std::size_t length) const {
  const Scored& piece = pieces_[static_cast<std::size_t>(id)];
  if (rules_ == UnigramRules::kSentencePiece && piece.kind == PieceKind::kUserDefined) {
    return as_float(static_cast<double>(length) * max_score_) - kUserDefinedMargin;
  }
  return piece.score;
}

void Unigram::offer(Best& target, std::size_t last, double score) const {
  if (rules_ == UnigramRules::kSentencePiece) score = as_float(score);
  if (target.last > 0 && !(score > target.score)) return;
  target = {score, static_cast<std::uint16_t>(last)};
}

// By the byte where it begins, the length of each piece of the best way. Scores are only kept for
// as far as a piece reaches.
std::vector<std::uint16_t> Unigram::best_cuts(std::string_view text, Work& work) const {
  std::vector<Best> ahead(std::min(longest_, text.size()) + 1);  // by byte, round and round
  const auto best_at = [&](std::size_t at) -> Best& { return ahead[at % ahead.size()]; };
  std::vector<std::uint16_t> lengths(text.size() + 1);  // of last pieces, by their ends
  for (std::size_t at = 0; at < text.size();) {
    const double score_here = best_at(at).score;
    const std::size_t size = decode_at(text, at).size;
    bool has_character = false;
    std::uint32_t node = PieceTrie::kRoot;
    std::size_t end = at;
    while (end < text.size()) {
      node = trie_.child(node, static_cast<unsigned char>(text[end++]));
      if (node == PieceTrie::kNowhere) break;
      const std::int32_t id = trie_.value(node);
      if (id == PieceTrie::kNoValue) continue;
      offer(best_at(end), end - at, score_of(id, end - at) + score_here);
      has_character = has_character || end - at == size;
    }
    work.did(end - at);
    if (!has_character) offer(best_at(at + size), size, unknown_score_ + score_here);
    for (const std::size_t next = at + size; at < next; ++at) {
      lengths[at] = best_at(at).last;
      best_at(at) = {};
    }
  }
  lengths[text.size()] = best_at(text.size()).last;
  // Turned round, in place.
  std::size_t length = lengths[text.size()];
  for (std::size_t end = text.size(); end > 0;) {
    const std::size_t begin = end - length;
    const std::size_t before = lengths[begin];
    lengths[begin] = static_cast<std::uint16_t>(length);
    length = before;
    end = begin;
  }
  return lengths;
}

// Of a piece of the best way, the only one that it can be.
std::optional<std::int32_t> Unigram::id_of(std::string_view cut) const {
  const PieceTrie::Match match = trie_.longest_prefix(cut);
  return match.length == cut.size() ? std::optional(match.value) : unknown_;
}

bool Unigram::write_bytes(std::string_view run, Sink<std::int32_t> out) const {
  const auto id_of_byte = [&](char byte) {
    return vocabulary_.find(byte_piece(static_cast<unsigned char>(byte)));
  };
  if (!std::all_of(run.begin(), run.end(), [&](char byte) { return id_of_byte(byte); }))
    return false;
  for (const char byte : run) out(*id_of_byte(byte));
  return true;
}

void Unigram::write_unknown(std::string_view run, Sink<std::int32_t> out) const {
  if (rules_ == UnigramRules::kTokenizers) {
    // The text of the unknown piece itself.
    if (const auto id = vocabulary_.find(run)) return out(*id);
  }
  if (byte_fallback_ && write_bytes(run, out)) return;
  if (!unknown_) {
    std::size_t shown = std::min(run.size(), kLongestShown);
    while (shown < run.size() && is_continuation(run[shown])) --shown;
    throw TextError(where_ + ": the text has the unknown characters '" +
                    std::string(run.substr(0, shown)) +
                    "' and the model has no unknown piece. Remove them, or give the model an "
                    "unk_id.");
  }
  out(*unknown_);
}

void Unigram::encode(std::string_view text, Work& work, Sink<std::int32_t> out) const {
  if (text.empty()) return;
  const std::vector<std::uint16_t> lengths = best_cuts(text, work);
  std::size_t unknown_from = 0;
  bool is_unknown = false;  // what stands before
  const auto finish_unknown = [&](std::size_t end) {
    if (std::exchange(is_unknown, false))
      write_unknown(text.substr(unknown_from, end - unknown_from), out);
  };
  for (std::size_t at = 0; at < text.size(); at += lengths[at]) {
    const std::optional<std::int32_t> id = id_of(text.substr(at, lengths[at]));
    if (id == unknown_) {
      if (!std::exchange(is_unknown, true)) unknown_from = at;
      continue;
    }
    finish_unknown(at);
    out(*id);
  }
  finish_unknown(text.size());
}

}  // namespace heddle::text
