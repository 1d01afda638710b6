#include "spiece_normalizer.h"

#include "utf8.h"

namespace heddle::text {
namespace {

struct Prefix {
  std::string_view text;   // what the prefix becomes
  std::size_t length = 0;  // bytes that it takes, not 0
};

// REQUIRES: `text` is not empty.
Prefix next_prefix(const SpieceRules& rules, std::string_view text) {
  const PieceTrie::Match symbol = rules.user_defined.longest_prefix(text);
  if (symbol.length > 0) return {text.substr(0, symbol.length), symbol.length};
  if (rules.map) {
    if (const auto rule = rules.map->longest_prefix(text)) return {rule->replacement, rule->length};
  }
  const std::size_t length = decode_at(text, 0).size;
  return {text.substr(0, length), length};
}

std::string_view without_leading_spaces(const SpieceRules& rules, std::string_view text) {
  while (!text.empty()) {
    const Prefix prefix = next_prefix(rules, text);
    if (prefix.text != " ") break;
    text.remove_prefix(prefix.length);
  }
  return text;
}

}  // namespace

std::string spiece_normalized(const SpieceRules& rules, std::string_view text) {
  const std::string_view space = rules.escape_whitespaces ? "\xE2\x96\x81" : " ";
  if (rules.remove_extra_whitespaces) text = without_leading_spaces(rules, text);
  std::string out;
  if (text.empty()) return out;
  out.reserve(text.size() * 2);
  if (rules.add_dummy_prefix && !rules.whitespace_as_suffix) out += space;
  bool after_space = rules.remove_extra_whitespaces;
  while (!text.empty()) {
    Prefix prefix = next_prefix(rules, text);
    text.remove_prefix(prefix.length);
    while (after_space && prefix.text.starts_with(' ')) prefix.text.remove_prefix(1);
    for (const char c : prefix.text) {
      if (c == ' ') {
        out += space;
      } else {
        out.push_back(c);
      }
    }
    if (!prefix.text.empty()) after_space = prefix.text.ends_with(' ');
    if (!rules.remove_extra_whitespaces) after_space = false;
  }
  while (rules.remove_extra_whitespaces && out.ends_with(space)) {
    out.resize(out.size() - space.size());
  }
  if (rules.add_dummy_prefix && rules.whitespace_as_suffix) out += space;
  return out;
}

}  // namespace heddle::text
