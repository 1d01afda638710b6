#include "json_dump.h"

#include <cmath>

#include "python_text.h"

namespace heddle::loaders {
namespace {

std::string json_quoted(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  constexpr std::string_view kShort = "\"\\\b\f\n\r\t", kLetters = "\"\\bfnrt";
  std::string quoted = "\"";
  for (const char c : text) {
    const std::size_t at = kShort.find(c);
    if (at != kShort.npos)
      quoted += {'\\', kLetters[at]};
    else if (static_cast<unsigned char>(c) < 0x20)
      quoted += {'\\', 'u', '0', '0', kHex[c >> 4 & 15], kHex[c & 15]};
    else
      quoted += c;
  }
  return quoted + '"';
}

struct JsonWriter {
  int indent;
  std::string text;

  void line(int depth) {
    if (indent > 0) text += '\n' + std::string(std::size_t(indent) * std::size_t(depth), ' ');
  }
  void write_all(const Value& value, int depth) {
    const bool is_record = value.is(HEDDLE_KIND_RECORD);
    const std::uint32_t count = value.count();
    text += is_record ? '{' : '[';
    for (std::uint32_t i = 0; i < count; ++i) {
      if (i > 0) text += indent > 0 ? "," : ", ";
      line(depth + 1);
      if (is_record) text += json_quoted(value.key(i)) + ": ";
      write(value.item(i), depth + 1);
    }
    if (count > 0) line(depth);
    text += is_record ? '}' : ']';
  }
  void write(const Value& value, int depth) {
    constexpr int kDeepest = 500;
    if (depth > kDeepest)
      throw Error(HEDDLE_INVALID_ARGUMENT, "the value is nested more than 500 levels deep");
    switch (value.kind()) {
      case HEDDLE_KIND_NONE:
        text += "null";
        return;
      case HEDDLE_KIND_BOOL:
        text += value.as<bool>() ? "true" : "false";
        return;
      case HEDDLE_KIND_FLOAT: {
        const auto number = value.as<double>();
        text += std::isnan(number)   ? "NaN"
                : std::isinf(number) ? (number < 0 ? "-Infinity" : "Infinity")
                                     : python_float(number);
        return;
      }
      case HEDDLE_KIND_INT:
      case HEDDLE_KIND_UINT:
        text += python_str(value);
        return;
      case HEDDLE_KIND_STR:
        text += json_quoted(value.text());
        return;
      case HEDDLE_KIND_LIST:
      case HEDDLE_KIND_RECORD:
        return write_all(value, depth);
      default:
        throw Error(HEDDLE_INVALID_ARGUMENT,
                    "JSON cannot hold a " + python_str(value) + ". Link a list or a dictionary.");
    }
  }
};

}  // namespace

std::string json_dump(const Value& value, int indent) {
  JsonWriter writer{indent, {}};
  writer.write(value, 0);
  return std::move(writer.text);
}

}  // namespace heddle::loaders
