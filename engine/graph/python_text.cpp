#include "engine/graph/python_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "engine/base/text.h"

namespace heddle::engine {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// What str.strip() takes away, of ASCII.
std::string_view strip(std::string_view text) {
  const auto is_space = [](char c) {
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F);
  };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// Removes underscores that stand between two digits; nothing when one stands elsewhere.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
    } else if (i == 0 || i + 1 == text.size() || !is_digit(text[i - 1]) || !is_digit(text[i + 1])) {
      return std::nullopt;
    }
  }
  return out;
}

// Of a number that no double can hold: whether it is too small rather than too large. from_chars
// does not say.
bool is_tiny(std::string_view digits) {
  const std::size_t exponent = digits.find_first_of("eE");
  if (exponent != std::string_view::npos) return digits[exponent + 1] == '-';
  return digits.find_first_not_of('0') == digits.find('.');
}

struct Signed {
  bool negative = false;
  std::string_view digits;
};

Signed split_sign(std::string_view text) {
  if (text.empty() || (text.front() != '-' && text.front() != '+')) return {false, text};
  return {text.front() == '-', text.substr(1)};
}

bool equals_ignoring_case(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; });
}

// repr(float): the fewest digits that read back, with an exponent below 1e-4 and from 1e16 on.
std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[64];
  const double size = std::fabs(number);
  const bool exponent = size != 0 && (size < 1e-4 || size >= 1e16);
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, number,
                    exponent ? std::chars_format::scientific : std::chars_format::fixed)
          .ptr;
  std::string text(buffer, end);
  if (!exponent && text.find('.') == std::string::npos) text += ".0";
  return text;
}

// repr(str).
std::string python_quoted(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char mark = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, mark);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0u;
    const bool latin_control = byte == 0xC2 && ((next >= 0x80 && next <= 0xA0) || next == 0xAD);
    if (c == mark || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (byte < 0x20 || byte == 0x7F || latin_control) {
      const unsigned code =
          latin_control ? next : byte;  // U+0080..U+00BF are 0xC2 and the code itself
      out += "\\x";
      out += kHex[code >> 4];
      out += kHex[code & 15];
      if (latin_control) ++i;
    } else {
      out += c;
    }
  }
  return out + mark;
}

// repr(value): recursion ends at kMaxJsonDepth.
std::string shown(const Json& value) {
  switch (value.kind()) {
    case Json::Kind::string:
      return python_quoted(value.as_string());
    case Json::Kind::array: {
      std::vector<std::string> items;
      for (const Json& item : value.as_array()) items.push_back(shown(item));
      return cat("[", join(items, ", "), "]");
    }
    case Json::Kind::object: {
      std::vector<std::string> items;
      for (const Json::Member& member : value.members())
        items.push_back(cat(python_quoted(member.key), ": ", shown(member.value)));
      return cat("{", join(items, ", "), "}");
    }
    default:
      return python_text(value);
  }
}

}  // namespace

std::string python_text(const Json& value) {
  switch (value.kind()) {
    case Json::Kind::null:
      return "None";
    case Json::Kind::boolean:
      return value.as_bool() ? "True" : "False";
    case Json::Kind::integer:
      return cat(value.as_int64());
    case Json::Kind::unsigned_integer:
      return cat(value.as_uint64());
    case Json::Kind::real:
      if (const std::string* digits = value.wide_digits()) return *digits;
      return float_text(value.as_double());
    case Json::Kind::string:
      return value.as_string();
    default:
      return shown(value);
  }
}

bool python_truth(const Json& value) {
  switch (value.kind()) {
    case Json::Kind::null:
      return false;
    case Json::Kind::boolean:
      return value.as_bool();
    case Json::Kind::integer:
      return value.as_int64() != 0;
    case Json::Kind::unsigned_integer:
      return true;
    case Json::Kind::real:
      return value.as_double() != 0;
    case Json::Kind::string:
      return !value.as_string().empty();
    default:
      return value.size() > 0;
  }
}

std::optional<WholeNumber> python_integer(std::string_view text) {
  const std::optional<std::string> plain = without_underscores(strip(text));
  if (!plain) return std::nullopt;
  const auto [negative, digits] = split_sign(*plain);
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) return std::nullopt;
  std::uint64_t size = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), size).ec != std::errc())
    return std::nullopt;
  constexpr std::uint64_t kLowest = std::uint64_t{1} << 63;
  if (negative)
    return size > kLowest ? std::nullopt
                          : std::optional<WholeNumber>(static_cast<std::int64_t>(0 - size));
  if (size < kLowest) return static_cast<std::int64_t>(size);
  return size;
}

std::optional<double> python_float(std::string_view text) {
  const std::optional<std::string> plain = without_underscores(strip(text));
  if (!plain) return std::nullopt;
  const auto [negative, digits] = split_sign(*plain);
  double size = 0;
  if (equals_ignoring_case(digits, "inf") || equals_ignoring_case(digits, "infinity")) {
    size = HUGE_VAL;
  } else if (equals_ignoring_case(digits, "nan")) {
    size = NAN;
  } else {
    if (digits.empty() || !(is_digit(digits.front()) || digits.front() == '.')) return std::nullopt;
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, size);
    if (stop != end || error == std::errc::invalid_argument) return std::nullopt;
    if (error == std::errc::result_out_of_range) size = is_tiny(digits) ? 0.0 : HUGE_VAL;
  }
  return negative ? -size : size;
}

std::optional<WholeNumber> truncated(double number) {
  const double whole = std::trunc(number);
  if (whole >= -9223372036854775808.0 && whole < 9223372036854775808.0)
    return static_cast<std::int64_t>(whole);
  if (whole >= 0 && whole < 18446744073709551616.0) return static_cast<std::uint64_t>(whole);
  return std::nullopt;
}

}  // namespace heddle::engine
