#include "byte_level_bpe.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <limits>

#include "text_error.h"
#include "utf8.h"

namespace heddle::text {
namespace {

// Of a word; a symbol's length has to fit an id.
constexpr std::size_t kMostCharacters = std::numeric_limits<std::int32_t>::max();

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) |
         static_cast<std::uint32_t>(right);
}

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
  const std::size_t count = options_.merges.size() + options_.merged_ids.size();
  merges_.reserve(count);
  merged_ids_.reserve(count);
  const auto add = [&](std::int32_t left, std::int32_t right, std::int32_t merged) {
    const auto rank = static_cast<std::uint32_t>(merged_ids_.size());
    merges_.insert_or_assign(pair_key(left, right), Merge{rank, merged});
    merged_ids_.push_back(merged);
  };
  for (std::size_t rank = 0; rank < options_.merges.size(); ++rank) {
    const auto& [left, right] = options_.merges[rank];
    std::string_view tail = right;
    tail.remove_prefix(std::min(tail.size(), options_.continuing_prefix.size()));
    const std::int32_t merged = id_of(left + std::string(tail), rank);
    add(id_of(left, rank), id_of(right, rank), merged);
  }
  for (const BpeOptions::Ids& ids : options_.merged_ids) add(ids.left, ids.right, ids.merged);
  options_.merges = {};
  options_.merged_ids = {};
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
  out.reserve(static_cast<std::size_t>(
      std::count_if(word.begin(), word.end(), [](char byte) { return !is_continuation(byte); })));
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

// Merges the symbols of a word in place. A symbol has its id where it begins; one of several
// characters has its length, negative, in its second place and in its last, so that its neighbours
// are found from both sides, and something negative in all between.
class ByteLevelBpe::Merging {
 public:
  Merging(const ByteLevelBpe& bpe, std::vector<std::int32_t>& places, Work& work)
      : bpe_(bpe), places_(places), work_(work) {}

  void run() {
    const auto for_each = [&](auto&& body) {
      for (std::size_t left = 0; left + 1 < places_.size(); ++left)
        if (const Merge* found = at(left)) body(candidate(*found, left));
    };
    if (places_.size() > kLongWord) {  // rather twice the time than twice the memory
      std::size_t count = 0;
      for_each([&](std::uint64_t) { ++count; });
      candidates_.reserve(count);
    }
    for_each([&](std::uint64_t each) { candidates_.push_back(each); });
    room_ = candidates_.size() + candidates_.size() / 4 + kSpareCandidates;
    std::make_heap(candidates_.begin(), candidates_.end(), std::greater<>());
    while (!candidates_.empty()) {
      std::pop_heap(candidates_.begin(), candidates_.end(), std::greater<>());
      const std::uint64_t top = candidates_.back();
      candidates_.pop_back();
      work_.did(1);
      if (is_current(top)) merge(static_cast<std::uint32_t>(top), id_of(top));
    }
  }

 private:
  static constexpr std::size_t kSpareCandidates = 16, kLongWord = 4096;

  // A merge to come: its rank and, of equal ranks, the leftmost place first.
  static std::uint64_t candidate(const Merge& merge, std::size_t left) {
    return (static_cast<std::uint64_t>(merge.rank) << 32) | left;
  }
  std::int32_t id_of(std::uint64_t candidate) const { return bpe_.merged_ids_[candidate >> 32]; }

  std::size_t next(std::size_t begin) const {
    const bool is_long = begin + 1 < places_.size() && places_[begin + 1] < 0;
    return begin + (is_long ? static_cast<std::size_t>(-places_[begin + 1]) : 1);
  }
  std::size_t previous(std::size_t begin) const {
    const std::int32_t last = places_[begin - 1];
    return begin - (last < 0 ? static_cast<std::size_t>(-last) : 1);
  }

  // What the symbol that begins here and the one after it merge to.
  const Merge* at(std::size_t left) const {
    const std::size_t right = next(left);
    return right < places_.size() ? bpe_.find_merge(places_[left], places_[right]) : nullptr;
  }

  // False: the pair has changed since.
  bool is_current(std::uint64_t candidate) const {
    const auto left = static_cast<std::uint32_t>(candidate);
    if (places_[left] < 0) return false;
    const Merge* found = at(left);
    return found != nullptr && found->id == id_of(candidate);
  }

  void merge(std::size_t left, std::int32_t id) {
    const std::size_t end = next(next(left));
    const auto length = static_cast<std::int32_t>(end - left);
    places_[next(left)] = -1;
    places_[left] = id;
    places_[left + 1] = places_[end - 1] = -length;
    if (left > 0) offer(previous(left));
    offer(left);
  }

  void offer(std::size_t left) {
    const Merge* found = at(left);
    if (found == nullptr) return;
    if (candidates_.size() >= room_) drop_stale();
    candidates_.push_back(candidate(*found, left));
    std::push_heap(candidates_.begin(), candidates_.end(), std::greater<>());
  }

  // Instead of more memory: a pair is longer when it has changed, so what is stale stays so.
  void drop_stale() {
    work_.did(candidates_.size());
    std::erase_if(candidates_, [&](std::uint64_t each) { return !is_current(each); });
    std::make_heap(candidates_.begin(), candidates_.end(), std::greater<>());
    room_ = std::max(room_, candidates_.size() + candidates_.size() / 4 + kSpareCandidates);
    candidates_.reserve(room_);
  }

  const ByteLevelBpe& bpe_;
  std::vector<std::int32_t>& places_;
  Work& work_;
  std::vector<std::uint64_t> candidates_;  // a heap; stale ones among them
  std::size_t room_ = 0;                   // of candidates, before stale ones are dropped
};

void ByteLevelBpe::encode(std::string_view word, Work& work, Sink<std::int32_t> out) const {
  if (word.empty()) return;
  if (options_.ignore_merges) {
    if (const auto id = options_.vocabulary.find(word)) return out(*id);
  }
  if (word.size() > kMostCharacters) {
    throw TextError(where_ + ": a word of " + std::to_string(word.size()) +
                    " bytes is too long, at most " + std::to_string(kMostCharacters) +
                    " are accepted. Shorten the text.");
  }
  work.did(word.size());
  std::vector<std::int32_t> places = characters(word);
  Merging(*this, places, work).run();
  for (const std::int32_t place : places)
    if (place >= 0) out(place);
}

}  // namespace heddle::text
