// Text for people: building messages (libstdc++ 12 has no std::format), sizes in bytes, "did you
// mean", UTF-8 checks and glob patterns. Pure functions without a locale: the same bytes on every
// machine. Any thread.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace heddle::engine {

namespace text_detail {

inline void append(std::string& out, std::string_view text) { out += text; }
inline void append(std::string& out, char character) { out += character; }

template <typename T>
requires(std::is_arithmetic_v<T> && !std::same_as<T, char>) void append(std::string& out, T value) {
  if constexpr (std::same_as<T, bool>) {
    out += value ? "true" : "false";
  } else {
    char digits[64];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    out.append(digits, end);
  }
}

}  // namespace text_detail

// The arguments, one after the other: string-likes as they are, integers in decimal, float and
// double by the fewest digits that read back as the same number, bool as true or false.
template <typename... Args>
std::string cat(const Args&... args) {
  std::string out;
  (text_detail::append(out, args), ...);
  return out;
}

// The elements of a range, each as cat() would write it, with `separator` between them.
template <typename Range>
std::string join(const Range& range, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const auto& element : range) {
    if (!first) out += separator;
    first = false;
    text_detail::append(out, element);
  }
  return out;
}

// The first lines, and one that counts the others ("... and 980 more"): a fault that is everywhere
// does not have to be read a thousand times. `whole`: so many at the front are not counted.
std::vector<std::string> clip_lines(std::vector<std::string> lines, std::size_t whole = 0);

// "512 B", "1.5 KiB", "14.0 GiB": binary units, one decimal.
std::string format_bytes(std::uint64_t bytes);

// "1000", "512MiB", "14 GiB", "1.5g". A bare letter (k, m, g, t) and the forms with "i" are powers
// of 1024; "kb", "MB", "gb" are powers of 1000. Case does not matter. Nothing for any other text, a
// negative number, or 2^64 bytes and more.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

// "60%", "12.5 %": a share, 0.6. More than 0, at most 100 percent. Nothing for any other text.
std::optional<double> parse_percent(std::string_view text);

// `text` as it may be shown to people: what would move a cursor, begin a line or turn the direction
// of text is written out ("\\n", "\\x1b", "\\u202e"), and invalid UTF-8 is replaced. So a title or
// the name of a file can neither command a terminal nor look like a line of ours.
std::string printable(std::string_view text);
// The same for what may have several lines: line ends stay.
std::string printable_lines(std::string_view text);

// `name` in single quotes for a message: printable(), long names clipped.
std::string quote(std::string_view name);

// At most `limit` bytes of `text`, cut at a character's border and ended by "..." when anything was
// cut.
std::string clip(std::string_view text, std::size_t limit);

// Offset of the first byte that does not belong to valid UTF-8 (overlong forms and surrogates are
// invalid), or nothing.
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

// `text` with every invalid byte replaced by U+FFFD.
std::string to_valid_utf8(std::string_view text);

// Whether the whole of `text` matches `pattern`: "*" stands for any run of bytes, "?" for one byte.
// Linear in pattern x text, without recursion.
bool matches_glob(std::string_view pattern, std::string_view text);

// The candidates that `name` is probably a misspelling of, nearest first (distance of Damerau and
// Levenshtein without regard to case, then with regard to it, then the candidates' own order).
std::vector<std::string> nearest_of(std::string_view name,
                                    const std::vector<std::string_view>& candidates,
                                    std::size_t limit);

template <typename Range>
std::vector<std::string> nearest(std::string_view name, const Range& candidates,
                                 std::size_t limit = 3) {
  return nearest_of(
      name, std::vector<std::string_view>(std::begin(candidates), std::end(candidates)), limit);
}

// {} -> "", {"x"} -> " Did you mean 'x'?", {"x", "y"} -> " Did you mean 'x' or 'y'?": ready to be
// put behind a sentence.
std::string suggestion(const std::vector<std::string>& names);

template <typename Range>
std::string did_you_mean(std::string_view name, const Range& candidates) {
  return suggestion(nearest(name, candidates));
}

}  // namespace heddle::engine
