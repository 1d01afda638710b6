// UTF-8 in and out. Everything behind Tokenizer::encode() works on valid UTF-8, which valid_utf8()
// makes from any bytes; the other functions rely on it. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::text {

constexpr char32_t kReplacementCharacter = 0xFFFD;

struct CodePoint {
  char32_t value = 0;
  std::size_t size = 1;  // bytes
};

// The code point that starts at byte `at`; a malformed sequence gives U+FFFD with the number of
// bytes that the "maximal subpart" rule of the Unicode standard (section 3.9) replaces by one
// U+FFFD. REQUIRES: at < text.size().
CodePoint decode_at(std::string_view text, std::size_t at);

void append_utf8(std::string& out, char32_t code_point);

bool is_valid_utf8(std::string_view text);

// `bytes` with every malformed part replaced by U+FFFD.
std::string valid_utf8(std::string_view bytes);

constexpr bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

}  // namespace heddle::text
