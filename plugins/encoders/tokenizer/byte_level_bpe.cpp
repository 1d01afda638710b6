#include "byte_level_bpe.h"

#include <array>
#include <cstdio>
#include <queue>
#include <tuple>

#include "text_error.h"
#include "utf8.h"

namespace heddle::text {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) |
         static_cast<std::uint32_t>(right);
}

// Symbols of a word as a doubly linked list in an array.
struct Symbol {
  std::int32_t id;
  std::size_t previous, next;
  bool is_merged = false;  // into the symbol before
};

struct Candidate {
  std::uint32_t rank;
  std::size_t at;  // the left symbol
  std::int32_t id;
};

struct IsLater {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return std::tie(a.rank, a.at) > std::tie(b.rank, b.at);
  }
};

}  // namespace

std::string byte_piece(unsigned char byte) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "<0x%02X>", byte);
  return text.data();
}

ByteLevelBpe::ByteLevelBpe(BpeOptions options, const std::string& where)
    : options_(std::move(options)), where_(where) {
  const auto id_of = [&](const std::string& piece, std::size_t rank) {
    if (const auto id = options_.vocabulary.find(piece)) return *id;
    throw TextError(where + ": merge " + std::to_string(rank) + " ('" +
                    options_.merges[rank].first + "' + '" + options_.merges[rank].second +
                    "') needs the token '" + piece +
                    "', which the vocabulary does not have. Use the vocabulary and the merges of "
                    "one tokenizer.");
  };
  if (options_.unknown) unknown_ = options_.vocabulary.find(*options_.unknown);
  merges_.reserve(options_.merges.size());
  for (std::size_t rank = 0; rank < options_.merges.size(); ++rank) {
    const auto& [left, right] = options_.merges[rank];
    std::string_view tail = right;
    tail.remove_prefix(std::min(tail.size(), options_.continuing_prefix.size()));
    const Merge merge{static_cast<std::uint32_t>(rank), id_of(left + std::string(tail), rank)};
    merges_.insert_or_assign(pair_key(id_of(left, rank), id_of(right, rank)), merge);
  }
  options_.merges = {};
}

const ByteLevelBpe::Merge* ByteLevelBpe::find_merge(std::int32_t left, std::int32_t right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

bool ByteLevelBpe::append_bytes(std::string_view character, std::vector<std::int32_t>& out) const {
  std::vector<std::int32_t> ids;
  for (const char byte : character) {
    const auto id = options_.vocabulary.find(byte_piece(static_cast<unsigned char>(byte)));
    if (!id) return false;
    ids.push_back(*id);
  }
  out.insert(out.end(), ids.begin(), ids.end());
  return true;
}

std::vector<std::int32_t> ByteLevelBpe::characters(std::string_view word) const {
  std::vector<std::int32_t> out;
  out.reserve(word.size());
  bool pending = false;  // an unknown token that is not written yet
  const auto flush = [&] {
    if (pending) out.push_back(*unknown_);
    pending = false;
  };
  std::string piece;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t size = decode_at(word, at).size;
    piece.clear();
    if (at > 0) piece += options_.continuing_prefix;
    piece += word.substr(at, size);
    at += size;
    if (at == word.size()) piece += options_.end_of_word_suffix;
    if (const auto id = options_.vocabulary.find(piece)) {
      flush();
      out.push_back(*id);
    } else if (options_.byte_fallback && append_bytes(piece, out)) {
      continue;  // a pending unknown token comes after the bytes: so it does in the package
    } else if (options_.unknown) {
      if (!unknown_) {
        throw TextError(where_ + ": the text has the unknown character '" + piece +
                        "', and the unknown token '" + *options_.unknown +
                        "' is not in the vocabulary. Remove it from the text or add the token.");
      }
      if (options_.unknown_runs == UnknownRuns::kEach) flush();
      pending = true;
    }
  }
  flush();
  return out;
}

void ByteLevelBpe::merge(const std::vector<std::int32_t>& characters,
                         std::vector<std::int32_t>& out) const {
  std::vector<Symbol> symbols;
  symbols.reserve(characters.size());
  for (std::size_t i = 0; i < characters.size(); ++i) {
    const bool is_last = i + 1 == characters.size();
    symbols.push_back({characters[i], i == 0 ? kNone : i - 1, is_last ? kNone : i + 1});
  }
  std::priority_queue<Candidate, std::vector<Candidate>, IsLater> queue;
  const auto offer = [&](std::size_t left) {
    if (left == kNone || symbols[left].next == kNone) return;
    if (const Merge* found = find_merge(symbols[left].id, symbols[symbols[left].next].id)) {
      queue.push({found->rank, left, found->id});
    }
  };
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i) offer(i);
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    Symbol& left = symbols[top.at];
    if (left.is_merged || left.next == kNone) continue;
    Symbol& right = symbols[left.next];
    const Merge* found = find_merge(left.id, right.id);
    if (found == nullptr || found->id != top.id) continue;  // the pair has changed since
    left.id = top.id;
    right.is_merged = true;
    left.next = right.next;
    if (right.next != kNone) symbols[right.next].previous = top.at;
    offer(left.previous);
    offer(top.at);
  }
  for (const Symbol& symbol : symbols) {
    if (!symbol.is_merged) out.push_back(symbol.id);
  }
}

void ByteLevelBpe::encode(std::string_view word, std::vector<std::int32_t>& out) const {
  if (word.empty()) return;
  if (options_.ignore_merges) {
    if (const auto id = options_.vocabulary.find(word)) {
      out.push_back(*id);
      return;
    }
  }
  merge(characters(word), out);
}

}  // namespace heddle::text
