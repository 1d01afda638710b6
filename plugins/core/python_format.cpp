#include "python_format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "characters.h"
#include "python_text.h"

namespace heddle::loaders {
namespace {

constexpr std::int64_t kMostWidth = 100'000;

struct FormatSpec {
  std::string fill = " ";
  char align = 0;  // 0: what the type has
  char sign = '-';
  bool no_negative_zero = false, alternate = false;
  std::int64_t width = 0;
  char grouping = 0;
  std::optional<std::int64_t> precision;
  char type = 0;
};

[[noreturn]] void refuse_format(const std::string& spec, const std::string& why) {
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "f_string: the format '" + spec + "' " + why + ". See Python's format strings.");
}

class SpecReader {
 public:
  explicit SpecReader(const std::string& spec) : spec_(spec), text_(characters_of(spec)) {}

  FormatSpec read() {
    FormatSpec f;
    const auto is_align = [&](std::size_t i) {
      return i < text_.size() &&
             std::u32string_view(U"<>=^").find(text_[i]) != std::u32string::npos;
    };
    if (is_align(1)) {
      f.fill = text_of_characters(&text_[0], &text_[0] + 1);
      at_ = 1;
    }
    if (is_align(at_)) f.align = char(text_[at_++]);
    if (peek() == '+' || peek() == '-' || peek() == ' ') f.sign = char(text_[at_++]);
    f.no_negative_zero = take('z');
    f.alternate = take('#');
    if (take('0') && !is_align(1)) {
      f.fill = "0";
      if (f.align == 0) f.align = '0';  // as '=' for numbers, nothing for texts
    }
    f.width = number().value_or(0);
    if (peek() == ',' || peek() == '_') f.grouping = char(text_[at_++]);
    if (take('.')) {
      f.precision = number();
      if (!f.precision) refuse_format(spec_, "has no precision behind its point");
    }
    if (at_ < text_.size() && text_[at_] < 0x80) f.type = char(text_[at_++]);
    if (at_ != text_.size()) refuse_format(spec_, "is invalid");
    return f;
  }

 private:
  Character peek() const { return at_ < text_.size() ? text_[at_] : 0; }
  bool take(char c) {
    if (peek() != Character(c)) return false;
    ++at_;
    return true;
  }
  std::optional<std::int64_t> number() {
    std::optional<std::int64_t> value;
    for (; peek() >= '0' && peek() <= '9'; ++at_) {
      value = value.value_or(0) * 10 + std::int64_t(peek() - '0');
      if (*value > kMostWidth)
        refuse_format(spec_, "asks for more than " + std::to_string(kMostWidth) + " characters");
    }
    return value;
  }

  const std::string& spec_;
  std::vector<Character> text_;
  std::size_t at_ = 0;
};

std::string repeated(const std::string& text, std::int64_t count) {
  std::string all;
  for (std::int64_t i = 0; i < count; ++i) all += text;
  return all;
}

std::string padded_text(const FormatSpec& f, char align, const std::string& text) {
  const std::int64_t missing = f.width - std::int64_t(characters_of(text).size());
  if (missing <= 0) return text;
  const std::int64_t left = align == '<' ? 0 : align == '>' ? missing : missing / 2;
  return repeated(f.fill, left) + text + repeated(f.fill, missing - left);
}

// Digits in groups, with zeros before them up to `least` characters.
std::string grouped(const std::string& digits, char separator, std::size_t size,
                    std::int64_t least) {
  std::string text;
  std::size_t in_group = 0;
  for (std::size_t i = digits.size(); i-- > 0 || std::int64_t(text.size()) < least;) {
    if (separator != 0 && in_group == size) {
      text += separator;
      in_group = 0;
    }
    const bool is_given = i < digits.size();
    text += is_given ? digits[i] : '0';
    if (!is_given) i = 0;
    ++in_group;
  }
  std::ranges::reverse(text);
  return text;
}

// A number in parts: its sign and prefix, its whole digits, what follows them.
std::string numeric_text(const FormatSpec& f, bool is_negative, const std::string& prefix,
                         const std::string& digits, const std::string& rest, std::size_t group) {
  std::string sign = is_negative ? "-" : f.sign == '-' ? "" : std::string(1, f.sign);
  sign += prefix;
  const char align = f.align == 0 ? '>' : f.align == '0' ? '=' : f.align;
  const bool fills_zeros = f.fill == "0" && align == '=';
  const std::int64_t least =
      fills_zeros ? f.width - std::int64_t(sign.size()) - std::int64_t(rest.size()) : 0;
  const bool has_digits = digits.find_first_not_of("0123456789abcdefABCDEF") == digits.npos;
  const std::string whole =
      has_digits ? grouped(digits, f.grouping, group, least) : repeated("0", least - 3) + digits;
  const std::string body = whole + rest;
  if (align != '=') return padded_text(f, align, sign + body);
  return sign + repeated(f.fill, f.width - std::int64_t(sign.size() + body.size())) + body;
}

// Numbers without a type have a point, for which a digit less is left before the exponent.
std::string with_point(const std::string& text, double size, int digits) {
  if (std::int64_t(text.size()) < digits) return text + ".0";
  std::vector<char> room(std::size_t(digits) + 16);
  std::snprintf(room.data(), room.size(), "%.*e", digits - 1, size);
  const std::string exponential = room.data();
  const std::size_t e = exponential.find('e');
  std::string mantissa = exponential.substr(0, e);
  if (mantissa.find('.') != mantissa.npos) mantissa.erase(mantissa.find_last_not_of('0') + 1);
  if (mantissa.ends_with('.')) mantissa.pop_back();
  return mantissa + exponential.substr(e);
}

std::string format_real(const FormatSpec& f, double number, const std::string& spec) {
  char type = f.type == 'n' || f.type == '%' ? (f.type == 'n' ? 'g' : 'f') : f.type;
  if (f.type == '%') number *= 100;
  const bool is_plain = type == 0;
  if (is_plain) type = 'g';
  if (std::string_view("eEfFgG").find(type) == std::string_view::npos)
    refuse_format(spec, "has a type that numbers with a point have not");
  if (f.type == 'n' && f.grouping != 0) refuse_format(spec, "has both groups and the type 'n'");
  std::string text;
  const double size = std::fabs(number);
  if (!std::isfinite(number)) {
    text = std::isnan(number) ? "nan" : "inf";
    if (type == 'E' || type == 'F' || type == 'G') text = upper(text);
  } else if (is_plain && !f.precision) {
    text = python_float(size);
    if (f.alternate && text.find_first_of(".e") == text.npos) text += '.';
  } else {
    const int digits =
        std::max(int(f.precision.value_or(6)),
                 std::string_view("gG").find(type) == std::string_view::npos ? 0 : 1);
    const std::string pattern = std::string(f.alternate ? "%#.*" : "%.*") + type;
    std::vector<char> room(std::size_t(digits) + 400);
    text.assign(room.data(), std::size_t(std::snprintf(room.data(), room.size(), pattern.c_str(),
                                                       digits, size)));
    if (is_plain && text.find_first_of(".e") == text.npos) text = with_point(text, size, digits);
  }
  bool is_negative = std::signbit(number) && !std::isnan(number);
  if (f.no_negative_zero && text.find_first_of("123456789in") == text.npos) is_negative = false;
  if (f.type == '%') text += '%';
  const std::size_t end =
      std::isfinite(number) ? std::min(text.find_first_not_of("0123456789"), text.size()) : 3;
  return numeric_text(f, is_negative, "", text.substr(0, end), text.substr(end), 3);
}

std::string format_whole(const FormatSpec& f, bool is_negative, std::uint64_t size,
                         const std::string& spec) {
  if (std::string_view("eEfFgG%").find(f.type) != std::string_view::npos && f.type != 0)
    return format_real(f, is_negative ? -double(size) : double(size), spec);
  if (f.no_negative_zero) refuse_format(spec, "has a 'z', which is of numbers with a point");
  if (f.precision) refuse_format(spec, "has a precision, which whole numbers have not");
  if (f.type == 'c') {
    const auto character = Character(size);
    if (is_negative || size > 0x10FFFF) refuse_format(spec, "is of a character that there is not");
    const char align = f.align == 0 || f.align == '0' || f.align == '=' ? '>' : f.align;
    return padded_text(f, align, text_of_characters(&character, &character + 1));
  }
  const bool is_decimal = f.type == 0 || f.type == 'd' || f.type == 'n';
  const unsigned base = is_decimal ? 10 : f.type == 'b' ? 2 : f.type == 'o' ? 8 : 16;
  if (!is_decimal && std::string_view("boxX").find(f.type) == std::string_view::npos)
    refuse_format(spec, "has a type that whole numbers have not");
  if (f.grouping == ',' && !is_decimal) refuse_format(spec, "has commas, which only decimals have");
  const char* kDigits = f.type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string digits;
  do digits += kDigits[size % base];
  while ((size /= base) != 0);
  std::ranges::reverse(digits);
  const std::string prefix = f.alternate && !is_decimal ? std::string("0") + f.type : "";
  return numeric_text(f, is_negative, prefix, digits, "", is_decimal ? 3 : 4);
}

std::string format_string(const FormatSpec& f, const std::string& text, const std::string& spec) {
  if ((f.type != 0 && f.type != 's') || f.align == '=' || f.sign != '-' || f.grouping != 0 ||
      f.alternate)
    refuse_format(spec, "is one of numbers, and this is a text");
  const std::string cut = f.precision ? slice_of(text, 0, *f.precision) : text;
  return padded_text(f, f.align == 0 || f.align == '0' ? '<' : f.align, cut);
}

}  // namespace

std::string python_format(const Value& value, const std::string& spec) {
  if (spec.empty()) return python_str(value);
  const FormatSpec f = SpecReader(spec).read();
  switch (value.kind()) {
    case HEDDLE_KIND_BOOL:
      return format_whole(f, false, value.as<bool>() ? 1 : 0, spec);
    case HEDDLE_KIND_INT: {
      const auto number = value.as<std::int64_t>();
      return format_whole(f, number < 0,
                          number < 0 ? 0 - std::uint64_t(number) : std::uint64_t(number), spec);
    }
    case HEDDLE_KIND_UINT:
      return format_whole(f, false, value.as<std::uint64_t>(), spec);
    case HEDDLE_KIND_FLOAT:
      return format_real(f, value.as<double>(), spec);
    case HEDDLE_KIND_STR:
      return format_string(f, value.as<std::string>(), spec);
    default:
      refuse_format(spec, "is of numbers and texts; " + python_str(value) + " takes none");
  }
}

}  // namespace heddle::loaders
