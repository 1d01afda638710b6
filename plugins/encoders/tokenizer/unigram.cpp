#include "unigram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "text_error.h"
#include "utf8.h"

namespace heddle::text {
namespace {

constexpr double kUnknownPenalty = 10.0;    // below the worst piece, as both programs have it
constexpr double kUserDefinedMargin = 0.1;  // SentencePiece: length * best score - 0.1

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
    }
    vocabulary_.add(piece.text, id);
    pieces_.push_back({piece.score, piece.kind});
  }
  if (!std::isfinite(min_score)) min_score = static_cast<double>(std::numeric_limits<float>::max());
  unknown_score_ = min_score - kUnknownPenalty;
  if (rules_ == UnigramRules::kSentencePiece) unknown_score_ = as_float(unknown_score_);
  trie_ = PieceTrie(std::move(entries));
}

double Unigram::score_of(std::int32_t id, std::size_t length) const {
  const Scored& piece = pieces_[static_cast<std::size_t>(id)];
  if (rules_ == UnigramRules::kSentencePiece && piece.kind == PieceKind::kUserDefined) {
    return as_float(static_cast<double>(length) * max_score_) - kUserDefinedMargin;
  }
  return piece.score;
}

void Unigram::offer(Best& target, std::size_t from, std::int32_t id, double score) const {
  if (rules_ == UnigramRules::kSentencePiece) score = as_float(score);
  if (target.from >= 0 && !(score > target.score)) return;
  target = {score, static_cast<std::int64_t>(from), id};
}

std::vector<Unigram::Cut> Unigram::best_cuts(std::string_view text) const {
  std::vector<Best> best(text.size() + 1);
  for (std::size_t at = 0; at < text.size();) {
    const double score_here = best[at].score;
    const std::size_t size = decode_at(text, at).size;
    bool has_character = false;
    std::uint32_t node = PieceTrie::kRoot;
    for (std::size_t end = at; end < text.size();) {
      node = trie_.child(node, static_cast<unsigned char>(text[end++]));
      if (node == PieceTrie::kNowhere) break;
      const std::int32_t id = trie_.value(node);
      if (id == PieceTrie::kNoValue) continue;
      offer(best[end], at, id, score_of(id, end - at) + score_here);
      has_character = has_character || end - at == size;
    }
    if (!has_character) {
      offer(best[at + size], at, unknown_.value_or(-1), unknown_score_ + score_here);
    }
    at += size;
  }
  std::vector<Cut> cuts;
  for (std::size_t end = text.size(); end > 0;) {
    const auto begin = static_cast<std::size_t>(best[end].from);
    cuts.push_back({begin, end, best[end].id});
    end = begin;
  }
  std::reverse(cuts.begin(), cuts.end());
  return cuts;
}

bool Unigram::append_bytes(std::string_view run, std::vector<std::int32_t>& out) const {
  std::vector<std::int32_t> ids;
  for (const char byte : run) {
    const auto id = vocabulary_.find(byte_piece(static_cast<unsigned char>(byte)));
    if (!id) return false;
    ids.push_back(*id);
  }
  out.insert(out.end(), ids.begin(), ids.end());
  return true;
}

void Unigram::append_unknown(std::string_view run, std::vector<std::int32_t>& out) const {
  if (rules_ == UnigramRules::kTokenizers) {
    if (const auto id = vocabulary_.find(run)) {  // the text of the unknown piece itself
      out.push_back(*id);
      return;
    }
  }
  if (byte_fallback_ && append_bytes(run, out)) return;
  if (!unknown_) {
    throw TextError(where_ + ": the text has the unknown characters '" + std::string(run) +
                    "' and the model has no unknown piece. Remove them, or give the model an "
                    "unk_id.");
  }
  out.push_back(*unknown_);
}

void Unigram::encode(std::string_view text, std::vector<std::int32_t>& out) const {
  if (text.empty()) return;
  const std::vector<Cut> cuts = best_cuts(text);
  const std::int32_t unknown = unknown_.value_or(-1);
  for (std::size_t i = 0; i < cuts.size();) {
    if (cuts[i].id != unknown) {
      out.push_back(cuts[i++].id);
      continue;
    }
    const std::size_t begin = cuts[i].begin;
    while (i < cuts.size() && cuts[i].id == unknown) ++i;
    append_unknown(text.substr(begin, cuts[i - 1].end - begin), out);
  }
}

}  // namespace heddle::text
