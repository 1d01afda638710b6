#include "charsmap.h"

#include <algorithm>

#include "text_error.h"
#include "utf8.h"

namespace heddle::text {
namespace {

// The layout of a unit is that of Darts-clone: bit 31 marks a value, bits 10..30 the offset, bit 9
// that the offset is in steps of 256, bit 8 that a value follows, bits 0..7 the label.
constexpr std::uint32_t kValueMark = 1U << 31;
constexpr std::uint32_t offset_of(std::uint32_t unit) {
  return (unit >> 10) << ((unit & (1U << 9)) >> 6);
}
constexpr std::uint32_t label_of(std::uint32_t unit) { return unit & (kValueMark | 0xFF); }
constexpr bool has_value(std::uint32_t unit) { return ((unit >> 8) & 1) != 0; }

// No rule is longer: the compiler of such maps allows 32 characters. It bounds the walk through a
// lying trie.
constexpr std::size_t kLongestRule = 256;

// Nor is any replacement; it bounds what a lying map can make of one character.
constexpr std::size_t kLongestReplacement = 256;

std::uint32_t little_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;)
    value = (value << 8) | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

}  // namespace

Charsmap Charsmap::parse(std::string_view blob, const std::string& where) {
  if (blob.size() < 4) {
    throw TextError(where + ": the character map has " + std::to_string(blob.size()) +
                    " bytes, its header alone needs 4. Download the file again.");
  }
  const std::size_t trie_bytes = little_endian(blob, 0);
  if (trie_bytes % 4 != 0 || trie_bytes == 0 || trie_bytes > blob.size() - 4) {
    throw TextError(where + ": the character map says that its trie has " +
                    std::to_string(trie_bytes) + " bytes, but " + std::to_string(blob.size() - 4) +
                    " follow (and it must be a multiple of 4). Download the file again.");
  }
  Charsmap map;
  map.units_.reserve(trie_bytes / 4);
  for (std::size_t i = 0; i < trie_bytes / 4; ++i) {
    map.units_.push_back(little_endian(blob, 4 + 4 * i));
  }
  map.replacements_ = std::string(blob.substr(4 + trie_bytes));
  if (!is_valid_utf8(map.replacements_)) {
    throw TextError(where +
                    ": the replacements of the character map are not valid UTF-8. "
                    "Download the file again.");
  }
  return map;
}

std::optional<std::string_view> Charsmap::replacement_at(std::uint32_t offset) const {
  if (offset >= replacements_.size() || is_continuation(replacements_[offset])) return {};
  const std::size_t end = std::min(replacements_.find('\0', offset), replacements_.size());
  if (end - offset > kLongestReplacement) return {};
  return std::string_view(replacements_).substr(offset, end - offset);
}

std::optional<Charsmap::Rule> Charsmap::search(std::string_view text, Stop stop) const {
  std::optional<Rule> best;
  std::size_t node = offset_of(units_[0]);
  const std::size_t length = std::min(text.size(), kLongestRule);
  for (std::size_t i = 0; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == 0) break;  // keys are C strings
    node ^= byte;
    if (node >= units_.size() || label_of(units_[node]) != byte) break;
    const std::uint32_t unit = units_[node];
    node ^= offset_of(unit);
    if (!has_value(unit)) continue;
    if (node >= units_.size()) break;
    const auto found = replacement_at(units_[node] & ~kValueMark);
    // A rule that would end inside a character can only come from a damaged map.
    if (!found || (i + 1 < text.size() && is_continuation(text[i + 1]))) continue;
    best = Rule{i + 1, *found};
    if (stop == Stop::kAtFirst) break;
  }
  return best;
}

std::optional<Charsmap::Rule> Charsmap::longest_prefix(std::string_view text) const {
  return search(text, Stop::kAtLast);
}

std::optional<Charsmap::Rule> Charsmap::shortest_prefix(std::string_view text) const {
  return search(text, Stop::kAtFirst);
}

std::string decode_base64(std::string_view text, const std::string& where) {
  const std::size_t data = std::min(text.find('='), text.size());
  const std::size_t padding = text.size() - data;
  const bool is_padded =
      padding <= 2 && text.find_first_not_of('=', data) == std::string_view::npos;
  if (text.size() % 4 != 0 || !is_padded) {
    throw TextError(where + ": " + std::to_string(text.size()) +
                    " characters are not a whole base64 text. Download the file again.");
  }
  std::string out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  int count = 0;
  for (std::size_t i = 0; i < data; ++i) {
    const int value = base64_value(text[i]);
    if (value < 0) {
      throw TextError(where + ": character " + std::to_string(i) +
                      " is not a base64 digit. Download the file again.");
    }
    bits = (bits << 6) | static_cast<std::uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out.push_back(static_cast<char>((bits >> count) & 0xFF));
    }
  }
  return out;
}

}  // namespace heddle::text
