// Long texts of every kind that has been expensive for some tokenizer. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::text {

// Of `bytes` or a few more, made of what `next` gives for random numbers.
inline std::string filled(std::size_t bytes,
                          const std::function<std::string(std::uint32_t)>& next) {
  std::string text;
  std::uint32_t state = 1;
  while (text.size() < bytes) {
    state = state * 1664525U + 1013904223U;
    text += next(state >> 8);
  }
  return text;
}

inline std::string repeated(std::size_t bytes, const std::string& part) {
  return filled(bytes, [&](std::uint32_t) { return part; });
}

inline std::string nested(std::size_t bytes, const std::string& inner) {
  return std::string(bytes / 2, '(') + inner + std::string(bytes / 2, ')');
}

// By name.
inline std::vector<std::pair<std::string, std::string>> long_texts(std::size_t bytes) {
  const auto one_of = [=](std::vector<std::string> parts) {
    return filled(bytes, [=](std::uint32_t number) { return parts[number % parts.size()]; });
  };
  const std::string joined = "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7";  // with a joiner
  return {
      {"words",
       one_of({"a ", "red ", "house, ", "on the left; ", "it's ", "42 ", "na\xC3\xAFve "})},
      {"one word", one_of({"a", "e", "t", "s", "r", "n"})},
      {"one letter", std::string(bytes, 'a')},
      {"spaces", std::string(bytes, ' ')},
      {"white space", one_of({" ", "\n", "\t", "\r", "\xE3\x80\x80", "\xC2\xA0"})},
      {"signs and digits", one_of({".", ",", "1", "7", "!", "-", "#", "$"})},
      {"digits", one_of({"1", "2", "3"})},
      {"emoji", one_of({"\xF0\x9F\x98\x80", joined, "\xF0\x9F\x87\xA9\xF0\x9F\x87\xAA"})},
      {"marks", "e" + one_of({"\xCC\x81", "\xCC\xA3", "\xCD\x84"})},
      {"marked letters", one_of({"e\xCC\x81", "a\xCC\x88\xCC\x81", "o\xCC\xA3"})},
      {"jamo", repeated(bytes, "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8")},
      {"long decompositions", repeated(bytes, "\xEF\xB7\xBA")},  // U+FDFA, 18 characters
      {"open parentheses", std::string(bytes, '(')},
      {"nested parentheses", nested(bytes, "a")},
      {"flat groups", repeated(bytes, "(a)")},
      {"weighted groups", repeated(bytes, "(a:1.2)")},
      {"groups of digits", "(a:" + std::string(bytes, '1') + ")"},
      {"escapes", one_of({"\\(", "\\)", "\\"})},
      {"embeddings", repeated(bytes, " embedding:a")},
      {"joined embeddings", repeated(bytes, "embedding:")},
      {"no UTF-8", one_of({"\xFF", "\xFE", "\x80", "\xF0\x9F"})},
      {"bytes 0xFF", std::string(bytes, '\xFF')},
      {"NUL", std::string(bytes, '\0')},
      {"metaspaces", repeated(bytes, "\xE2\x96\x81")},
      {"tokens", repeated(bytes, "</s> <|endoftext|>")},
  };
}

}  // namespace heddle::text
