#include "engine/base/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <system_error>
#include <tuple>

namespace heddle::engine {
namespace {

constexpr std::size_t kLongestQuote = 200;  // bytes of a name shown in a message
constexpr std::size_t kLongestNearest =
    128;  // longer names get no suggestion: the distance is quadratic

char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = to_lower(c);
  return out;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`; no substring
// is edited twice (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, substitute});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above);
    above.swap(row);
  }
  return above[b.size()];
}

// Length in bytes of the valid UTF-8 character at the start of `text` (not empty), 0 when it is
// invalid. The table of well-formed byte sequences is Table 3-7 of the Unicode standard.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xC2 && lead <= 0xDF   ? 2
                             : (lead & 0xF0) == 0xE0        ? 3
                             : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                            : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned second = byte(1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second > 0x9F;
  const bool too_large = lead == 0xF4 && second > 0x8F;
  return overlong || surrogate || too_large ? 0 : length;
}

// Controls of C0 and C1, DEL, line and paragraph separators, and what embeds, overrides or isolates
// a direction of text.
bool is_control(std::uint32_t character) {
  return character < 0x20 || (character >= 0x7F && character < 0xA0) ||
         (character >= 0x2028 && character <= 0x202E) ||
         (character >= 0x2066 && character <= 0x2069);
}

void append_escape(std::string& out, std::uint32_t character) {
  constexpr std::string_view kHex = "0123456789abcdef";
  // JSON takes the longer form, too, and has no need of the other: it writes C0 so itself.
  out += character < 0x20 ? "\\x" : "\\u";
  for (int shift = character < 0x20 ? 4 : 12; shift >= 0; shift -= 4)
    out += kHex[character >> shift & 15];
}

std::string escaped(std::string_view given, bool keeps_lines) {
  const std::string valid = to_valid_utf8(given);
  std::string out;
  out.reserve(valid.size());
  for (std::string_view text = valid; !text.empty();) {
    const std::string_view bytes = text.substr(0, utf8_length(text));
    text.remove_prefix(bytes.size());
    // None of them is longer than three bytes.
    std::uint32_t character = static_cast<unsigned char>(bytes[0]);
    if (bytes.size() > 1) character &= bytes.size() == 2 ? 0x1F : 0x0F;
    for (const char c : bytes.substr(1)) character = character << 6 | (c & 0x3F);
    if (bytes.size() > 3 || !is_control(character) || (keeps_lines && character == '\n'))
      out += bytes;
    else if (character == '\n' || character == '\t' || character == '\r')
      out += character == '\n' ? "\\n" : character == '\t' ? "\\t" : "\\r";
    else
      append_escape(out, character);
  }
  return out;
}

std::optional<std::uint64_t> unit_of(std::string_view suffix) {
  if (suffix.empty() || suffix == "b") return 1;
  constexpr std::string_view kLetters = "kmgt";
  const std::size_t power = kLetters.find(suffix.front());
  if (power == std::string_view::npos) return std::nullopt;
  const std::string_view rest = suffix.substr(1);
  if (rest == "b") {
    constexpr std::array<std::uint64_t, 4> kDecimal = {1'000, 1'000'000, 1'000'000'000,
                                                       1'000'000'000'000};
    return kDecimal[power];
  }
  if (rest.empty() || rest == "i" || rest == "ib") return std::uint64_t{1} << (10 * (power + 1));
  return std::nullopt;
}

}  // namespace

std::vector<std::string> clip_lines(std::vector<std::string> lines, std::size_t whole) {
  const std::size_t most = 20 + whole;
  if (lines.size() <= most + 1) return lines;
  const std::size_t others = lines.size() - most;
  lines.resize(most);
  lines.push_back(cat("... and ", others, " more"));
  return lines;
}

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return cat(bytes, " B");
  constexpr std::array<std::string_view, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // 1023.95 and more would be printed as 1024.0 of this unit.
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  char digits[32];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed, 1).ptr;
  return cat(std::string_view(digits, static_cast<std::size_t>(end - digits)), " ", kUnits[unit]);
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  const std::string lower = to_lower(trim(text));
  const std::size_t split = std::min(lower.find_first_not_of("0123456789."), lower.size());
  const std::string_view number = std::string_view(lower).substr(0, split);
  const std::optional<std::uint64_t> unit = unit_of(trim(std::string_view(lower).substr(split)));
  if (!unit || number.empty()) return std::nullopt;
  const char* end = number.data() + number.size();
  if (number.find('.') == std::string_view::npos) {
    std::uint64_t whole = 0;
    const auto [stop, error] = std::from_chars(number.data(), end, whole);
    if (error != std::errc() || stop != end) return std::nullopt;
    if (whole > std::numeric_limits<std::uint64_t>::max() / *unit) return std::nullopt;
    return whole * *unit;
  }
  double real = 0;
  const auto [stop, error] = std::from_chars(number.data(), end, real, std::chars_format::fixed);
  if (error != std::errc() || stop != end) return std::nullopt;
  const double bytes = std::round(real * static_cast<double>(*unit));
  if (!(bytes < 18446744073709551616.0)) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

std::optional<double> parse_percent(std::string_view text) {
  text = trim(text);
  if (!text.ends_with('%')) return std::nullopt;
  const std::string_view number = trim(text.substr(0, text.size() - 1));
  double percent = 0;
  const char* end = number.data() + number.size();
  const auto [stop, error] = std::from_chars(number.data(), end, percent, std::chars_format::fixed);
  if (error != std::errc() || stop != end || !(percent > 0 && percent <= 100)) return std::nullopt;
  return percent / 100;
}

std::string printable(std::string_view text) { return escaped(text, false); }
std::string printable_lines(std::string_view text) { return escaped(text, true); }

std::string quote(std::string_view name) {
  return cat("'", printable(clip(to_valid_utf8(name), kLongestQuote)), "'");
}

std::string clip(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  constexpr std::string_view kDots = "...";
  if (limit <= kDots.size()) return std::string(kDots.substr(0, limit));
  std::size_t end = limit - kDots.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return cat(text.substr(0, end), kDots);
}

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  constexpr std::uint64_t kHighBits = 0x8080'8080'8080'8080;
  std::size_t at = 0;
  while (at < text.size()) {
    // Most text is ASCII: eight characters at once.
    std::uint64_t eight;
    if (text.size() - at >= sizeof eight) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & kHighBits) == 0) {
        at += sizeof eight;
        continue;
      }
    }
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

std::string to_valid_utf8(std::string_view text) {
  std::string out;
  while (const std::optional<std::size_t> invalid = find_invalid_utf8(text)) {
    out += text.substr(0, *invalid);
    out += "\xEF\xBF\xBD";
    text.remove_prefix(*invalid + 1);
  }
  out += text;
  return out;
}

bool matches_glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0;
  std::size_t star =
      std::string_view::npos;  // the last '*' seen, and how much of the text it has taken so far
  std::size_t taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::vector<std::string> nearest_of(std::string_view name,
                                    const std::vector<std::string_view>& candidates,
                                    std::size_t limit) {
  if (name.empty() || name.size() > kLongestNearest) return {};
  const std::string lower = to_lower(name);
  using Rank =
      std::tuple<std::size_t, std::size_t, std::size_t>;  // distance without case, with case, index
  std::vector<Rank> ranks;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::string_view candidate = candidates[i];
    const std::size_t longest = std::max(name.size(), candidate.size());
    const std::size_t shortest = std::min(name.size(), candidate.size());
    const std::size_t allowed = std::max<std::size_t>(1, longest / 3);
    if (longest - shortest > allowed) continue;
    const std::size_t distance = edit_distance(lower, to_lower(candidate));
    if (distance > allowed || distance >= longest) continue;
    ranks.emplace_back(distance, edit_distance(name, candidate), i);
  }
  std::sort(ranks.begin(), ranks.end());
  std::vector<std::string> names;
  for (const Rank& rank : ranks) {
    const std::string_view candidate = candidates[std::get<2>(rank)];
    if (names.size() == limit) break;
    if (std::find(names.begin(), names.end(), candidate) == names.end())
      names.emplace_back(candidate);
  }
  return names;
}

std::string suggestion(const std::vector<std::string>& names) {
  if (names.empty()) return "";
  std::string out = " Did you mean ";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 == names.size() ? " or " : ", ";
    out += quote(names[i]);
  }
  return out + "?";
}

}  // namespace heddle::engine
