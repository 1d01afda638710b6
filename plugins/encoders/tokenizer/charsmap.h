// The precompiled character map of a SentencePiece model: a double-array trie (Darts) from byte
// strings to replacement texts. It comes from a file, so every index is checked; a step outside the
// arrays ends the search. Immutable after parsing, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::text {

class Charsmap {
 public:
  struct Rule {
    std::size_t length;            // bytes of the text that it replaces
    std::string_view replacement;  // valid UTF-8, owned by the map
  };

  // `blob`: 4 bytes little-endian size of the trie in bytes, the trie's 32-bit units, then the
  // replacements, each ended by a NUL. `where` names the file and field. Throws TextError.
  static Charsmap parse(std::string_view blob, const std::string& where);

  // The rule for the longest prefix of `text`, as SentencePiece applies the map.
  std::optional<Rule> longest_prefix(std::string_view text) const;

  // The rule for the shortest prefix of `text`, as the `tokenizers` package applies the map.
  std::optional<Rule> shortest_prefix(std::string_view text) const;

 private:
  enum class Stop { kAtFirst, kAtLast };
  std::optional<Rule> search(std::string_view text, Stop stop) const;
  std::optional<std::string_view> replacement_at(std::uint32_t offset) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

// The bytes of standard base64 with padding. Throws TextError naming `where`.
std::string decode_base64(std::string_view text, const std::string& where);

}  // namespace heddle::text
