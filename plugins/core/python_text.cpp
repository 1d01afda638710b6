#include "python_text.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <heddle/device.hpp>

#include "characters.h"

namespace heddle::loaders {
namespace {

// repr() of a text: in single quotes, or in double ones where it holds single ones alone.
std::string python_quoted(std::string_view text) {
  const bool has_single = text.find('\'') != text.npos, has_double = text.find('"') != text.npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string quoted(1, quote);
  for (const char c : text) {
    constexpr char kHex[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    if (c == quote || c == '\\')
      quoted += {'\\', c};
    else if (c == '\n')
      quoted += "\\n";
    else if (c == '\r')
      quoted += "\\r";
    else if (c == '\t')
      quoted += "\\t";
    else if (byte < 0x20 || byte == 0x7F)
      quoted += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    else
      quoted += c;
  }
  return quoted + quote;
}

// With \x, \u and \U in the place of characters beyond ASCII.
std::string in_ascii(const std::string& text) {
  std::string ascii;
  for (const Character c : characters_of(text)) {
    char escape[12];
    std::snprintf(escape, sizeof escape,
                  c < 0x80      ? "%c"
                  : c < 0x100   ? "\\x%02x"
                  : c < 0x10000 ? "\\u%04x"
                                : "\\U%08x",
                  unsigned(c));
    ascii += escape;
  }
  return ascii;
}

}  // namespace

std::string python_repr(const Value& value, bool ascii) {
  const std::string text =
      value.is(HEDDLE_KIND_STR) ? python_quoted(value.text()) : python_str(value);
  return ascii ? in_ascii(text) : text;
}

std::string python_float(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  const double size = std::fabs(number);
  const bool is_fixed = size == 0 || (size >= 1e-4 && size < 1e16);
  char digits[64];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, number,
                    is_fixed ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(digits, end.ptr);
  if (is_fixed && text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::string python_str(const Value& value) {
  std::string text;
  switch (value.kind()) {
    case HEDDLE_KIND_NONE:
      return "None";
    case HEDDLE_KIND_BOOL:
      return value.as<bool>() ? "True" : "False";
    case HEDDLE_KIND_INT:
      return std::to_string(value.as<std::int64_t>());
    case HEDDLE_KIND_UINT:
      return std::to_string(value.as<std::uint64_t>());
    case HEDDLE_KIND_FLOAT:
      return python_float(value.as<double>());
    case HEDDLE_KIND_STR:
      return value.as<std::string>();
    case HEDDLE_KIND_LIST:
      for (std::uint32_t i = 0; i < value.count(); ++i)
        text += (i > 0 ? ", " : "") + python_repr(value.item(i));
      return "[" + text + "]";
    case HEDDLE_KIND_RECORD:
      for (std::uint32_t i = 0; i < value.count(); ++i)
        text += (i > 0 ? ", " : "") + python_quoted(value.key(i)) + ": " +
                python_repr(value.field(value.key(i).c_str()));
      return "{" + text + "}";
    case HEDDLE_KIND_TENSOR:
      return "tensor " + device::describe(value.as<Tensor>().info());
    case HEDDLE_KIND_MODEL:
      return "model";
    default:
      return "object";
  }
}

bool python_bool(const Value& value) {
  switch (value.kind()) {
    case HEDDLE_KIND_NONE:
      return false;
    case HEDDLE_KIND_BOOL:
      return value.as<bool>();
    case HEDDLE_KIND_INT:
      return value.as<std::int64_t>() != 0;
    case HEDDLE_KIND_FLOAT:
      return value.as<double>() != 0;
    case HEDDLE_KIND_STR:
      return !value.text().empty();
    case HEDDLE_KIND_LIST:
    case HEDDLE_KIND_RECORD:
      return value.count() > 0;
    default:
      return true;
  }
}

}  // namespace heddle::loaders
