#include "plugins/blocks/json_text.h"

#include <cstdint>
#include <cstdio>

namespace heddle::blocks {
namespace {

constexpr std::uint32_t kReplacement = 0xfffd;

// Takes one code point off the front of `text`.
std::uint32_t take_code_point(std::string_view& text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xc2 && first < 0xe0 ? 2
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xf0 && first < 0xf5 ? 4
                                                             : 0;
  std::uint32_t point = length == 0   ? kReplacement
                        : length == 1 ? first
                                      : first & (0x7fu >> length);
  std::size_t used = 1;
  for (; used < length; ++used) {
    if (used >= text.size() || (byte(used) & 0xc0) != 0x80) {
      point = kReplacement;
      break;
    }
    point = point << 6 | (byte(used) & 0x3fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_whole = length > 0 && used == length;
  if (is_whole &&
      (point < kLeast[length] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)))
    point = kReplacement;
  text.remove_prefix(used);
  return point;
}

void append_unit(std::string& out, std::uint32_t unit) {
  char text[16];
  std::snprintf(text, sizeof text, "\\u%04x", static_cast<unsigned>(unit));
  out += text;
}

void append_escaped(std::string& out, std::uint32_t point) {
  if (point < 0x10000) return append_unit(out, point);
  append_unit(out, 0xd800 + ((point - 0x10000) >> 10));
  append_unit(out, 0xdc00 + ((point - 0x10000) & 0x3ff));
}

}  // namespace

std::string python_json(std::string_view json) {
  std::string out;
  out.reserve(json.size() + json.size() / 8);
  bool in_string = false;
  while (!json.empty()) {
    const char c = json.front();
    if (static_cast<unsigned char>(c) >= 0x7f) {
      append_escaped(out, take_code_point(json));
      continue;
    }
    json.remove_prefix(1);
    if (in_string && c == '\\' && !json.empty()) {
      out += c;
      // "\/" is allowed in JSON, but Python writes the slash alone.
      if (json.front() == '/') out.pop_back();
      out += json.front();
      json.remove_prefix(1);
      continue;
    }
    if (c == '"') in_string = !in_string;
    if (!in_string && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) continue;
    out += c;
    if (!in_string && (c == ',' || c == ':')) out += ' ';
  }
  return out;
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::uint32_t point = take_code_point(text);
    switch (point) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (point >= 0x20 && point < 0x7f)
          out += static_cast<char>(point);
        else
          append_escaped(out, point);
    }
  }
  return out + "\"";
}

}  // namespace heddle::blocks
