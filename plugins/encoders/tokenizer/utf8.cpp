#include "utf8.h"

namespace heddle::text {
namespace {

struct Lead {
  std::size_t size;  // bytes of the whole sequence, 0: not a lead byte
  unsigned char first_low,
      first_high;  // range of the second byte (excludes overlong forms and surrogates)
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

struct Step {
  CodePoint code_point;
  bool valid;
};

Step step_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const Lead lead = lead_of(byte(0));
  if (lead.size == 1) return {{byte(0), 1}, true};
  if (lead.size == 0) return {{kReplacementCharacter, 1}, false};
  char32_t value = byte(0) & (0x7F >> lead.size);
  for (std::size_t i = 1; i < lead.size; ++i) {
    const unsigned char low = i == 1 ? lead.first_low : 0x80;
    const unsigned char high = i == 1 ? lead.first_high : 0xBF;
    if (at + i >= text.size() || byte(i) < low || byte(i) > high) {
      return {{kReplacementCharacter, i}, false};
    }
    value = (value << 6) | (byte(i) & 0x3F);
  }
  return {{value, lead.size}, true};
}

}  // namespace

CodePoint decode_at(std::string_view text, std::size_t at) { return step_at(text, at).code_point; }

void append_utf8(std::string& out, char32_t code_point) {
  const auto push = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    push(code_point);
  } else if (code_point < 0x800) {
    push(0xC0 | (code_point >> 6));
    push(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    push(0xE0 | (code_point >> 12));
    push(0x80 | ((code_point >> 6) & 0x3F));
    push(0x80 | (code_point & 0x3F));
  } else {
    push(0xF0 | (code_point >> 18));
    push(0x80 | ((code_point >> 12) & 0x3F));
    push(0x80 | ((code_point >> 6) & 0x3F));
    push(0x80 | (code_point & 0x3F));
  }
}

bool is_valid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Step step = step_at(text, at);
    if (!step.valid) return false;
    at += step.code_point.size;
  }
  return true;
}

std::string valid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    const CodePoint next = decode_at(bytes, at);
    append_utf8(out, next.value);
    at += next.size;
  }
  return out;
}

}  // namespace heddle::text
