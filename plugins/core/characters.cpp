#include "characters.h"

#include <algorithm>
#include <clocale>
#include <cwctype>
#include <heddle/plugin.hpp>

namespace heddle::loaders {
namespace {

constexpr Character kReplacement = 0xFFFD;

// Takes one character off `text`. Bytes that are no UTF-8 stand for U+FFFD each.
Character take_character(std::string_view& text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t size = first < 0x80   ? 1
                           : first < 0xC2 ? 0
                           : first < 0xE0 ? 2
                           : first < 0xF0 ? 3
                           : first < 0xF5 ? 4
                                          : 0;
  Character one = size < 2 ? first : first & (0xFFu >> (size + 1));
  bool is_whole = size > 0 && size <= text.size();
  for (std::size_t i = 1; is_whole && i < size; ++i) {
    is_whole = (byte(i) & 0xC0) == 0x80;
    one = (one << 6) | (byte(i) & 0x3F);
  }
  constexpr Character kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  is_whole = is_whole && one >= kLeast[size] && one <= 0x10FFFF && (one < 0xD800 || one > 0xDFFF);
  text.remove_prefix(is_whole ? size : 1);
  return is_whole ? one : kReplacement;
}

void append(std::string& text, Character one) {
  const auto tail = [&](int shift) { text += char(0x80 | ((one >> shift) & 0x3F)); };
  if (one < 0x80) {
    text += char(one);
  } else if (one < 0x800) {
    text += char(0xC0 | (one >> 6));
    tail(0);
  } else if (one < 0x10000) {
    text += char(0xE0 | (one >> 12));
    tail(6);
    tail(0);
  } else {
    text += char(0xF0 | (one >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

// Unicode's letters, whatever the user's language: glibc has this locale built in.
locale_t unicode() {
  static const locale_t all = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (all == nullptr)
    throw Error(HEDDLE_UNSUPPORTED,
                "the C library has no locale C.UTF-8. Use glibc 2.35 or later.");
  return all;
}

Character capital(Character one) { return Character(towupper_l(wint_t(one), unicode())); }
Character small(Character one) { return Character(towlower_l(wint_t(one), unicode())); }

bool is_cased(Character one) {
  return iswupper_l(wint_t(one), unicode()) != 0 || iswlower_l(wint_t(one), unicode()) != 0;
}

// str.isspace().
bool is_space(Character one) {
  constexpr Character kSpaces[] = {0x20,   0x85,   0xA0,   0x1680, 0x2028,
                                   0x2029, 0x202F, 0x205F, 0x3000};
  return (one >= 0x09 && one <= 0x0D) || (one >= 0x1C && one <= 0x1F) ||
         (one >= 0x2000 && one <= 0x200A) || std::ranges::find(kSpaces, one) != std::end(kSpaces);
}

constexpr Character kSharpS = 0xDF;  // the one letter of common texts whose capital is two

}  // namespace

std::vector<Character> characters_of(std::string_view text) {
  std::vector<Character> all;
  all.reserve(text.size());
  while (!text.empty()) all.push_back(take_character(text));
  return all;
}

std::string text_of_characters(const Character* begin, const Character* end) {
  std::string text;
  for (; begin < end; ++begin) append(text, *begin);
  return text;
}

std::string upper(std::string_view text) {
  std::string changed;
  for (const Character one : characters_of(text))
    if (one == kSharpS)
      changed += "SS";
    else
      append(changed, capital(one));
  return changed;
}

std::string lower(std::string_view text) {
  std::string changed;
  for (const Character one : characters_of(text)) append(changed, small(one));
  return changed;
}

std::string titled(std::string_view text, bool first_only) {
  std::string changed;
  bool begins = true;
  for (const Character one : characters_of(text)) {
    if (begins && one == kSharpS)
      changed += "Ss";
    else
      append(changed, begins ? capital(one) : small(one));
    begins = !first_only && !is_cased(one);
  }
  return changed;
}

std::string slice_of(std::string_view text, std::int64_t start, std::int64_t end) {
  const std::vector<Character> all = characters_of(text);
  const auto size = std::int64_t(all.size());
  const auto place = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? (at < -size ? 0 : at + size) : at, 0, size);
  };
  return text_of_characters(all.data() + place(start), all.data() + place(end));
}

std::string replaced(const std::string& text, const std::string& find, const std::string& by) {
  std::string changed;
  if (find.empty()) {
    for (const Character one : characters_of(text)) {
      changed += by;
      append(changed, one);
    }
    return changed + by;
  }
  std::size_t at = 0;
  for (std::size_t next = text.find(find); next != text.npos; next = text.find(find, at)) {
    changed.append(text, at, next - at).append(by);
    at = next + find.size();
  }
  return changed.append(text, at);
}

std::string stripped(std::string_view text, bool left, bool right) {
  const std::vector<Character> all = characters_of(text);
  const Character *begin = all.data(), *end = all.data() + all.size();
  while (left && begin < end && is_space(*begin)) ++begin;
  while (right && begin < end && is_space(end[-1])) --end;
  return text_of_characters(begin, end);
}

}  // namespace heddle::loaders
