#include "plugins/shader/source_text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>

#include "plugins/shader/messages.h"

namespace heddle::shader {
namespace {

constexpr const char* kCopy = R"(uniform sampler2D u_image0;
in vec2 v_texCoord;
layout(location = 0) out vec4 fragColor0;
void main() { fragColor0 = texture(u_image0, v_texCoord); }
)";

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::size_t past_spaces(std::string_view text, std::size_t at) {
  while (at < text.size() && is_space(text[at])) ++at;
  return at;
}

std::string_view word_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && is_word(text[end])) ++end;
  return text.substr(at, end - at);
}

// All characters but those that end lines.
void blank(std::string& text, std::size_t begin, std::size_t end) {
  for (; begin < end; ++begin)
    if (text[begin] != '\n' && text[begin] != '\r') text[begin] = ' ';
}

// "precision highp float;"
void blank_precisions(std::string& text) {
  constexpr std::string_view kStatement = "precision";
  for (std::size_t at = text.find(kStatement); at != text.npos;
       at = text.find(kStatement, at + 1)) {
    const std::size_t quality_at = past_spaces(text, at + kStatement.size());
    const std::string_view quality = word_at(text, quality_at);
    if (quality != "lowp" && quality != "mediump" && quality != "highp") continue;
    const std::size_t type_at = past_spaces(text, quality_at + quality.size());
    const std::size_t end = past_spaces(text, type_at + word_at(text, type_at).size());
    if (end < text.size() && text[end] == ';' && end > type_at) blank(text, at, end + 1);
  }
}

std::uint32_t number_at(std::string_view text, std::size_t at, std::uint32_t otherwise) {
  std::uint32_t number = otherwise;
  std::from_chars(text.data() + std::min(at, text.size()), text.data() + text.size(), number);
  return number;
}

}  // namespace

std::string desktop_shader(const std::string& given) {
  std::string text = past_spaces(given, 0) == given.size() ? kCopy : given;
  for (std::size_t at = text.find("#version"); at != text.npos; at = text.find("#version", at))
    blank(text, at, std::min(text.find('\n', at), text.size()));
  blank_precisions(text);
  return "#version 330 core\n#line 1\n" + text;
}

std::uint32_t output_count(const std::string& text) {
  constexpr std::string_view kOutput = "fragColor";
  std::uint32_t count = 1;
  for (std::size_t at = text.find(kOutput); at != text.npos; at = text.find(kOutput, at + 1))
    count =
        std::max(count, 1 + std::min(kMostOutputs - 1, number_at(text, at + kOutput.size(), 0)));
  return count;
}

bool writes_output(const std::string& text, std::uint32_t number) {
  const std::string name = "fragColor";
  return text.find(name + std::to_string(number)) != text.npos ||
         (number == 0 && text.find(name) == text.npos);
}

std::uint32_t pass_count(const std::string& text) {
  constexpr std::string_view kPragma = "#pragma";
  for (std::size_t at = text.find(kPragma); at != text.npos; at = text.find(kPragma, at + 1)) {
    const std::size_t word = past_spaces(text, at + kPragma.size());
    if (word_at(text, word) == "passes")
      return std::max(1u, number_at(text, past_spaces(text, word + 6), 1));
  }
  return 1;
}

}  // namespace heddle::shader
