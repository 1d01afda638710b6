#include "engine/graph/saved_text.h"

#include <array>
#include <utility>

namespace heddle::engine {
namespace {

std::string without_comments(std::string_view text) {
  std::string kept;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    if (rest.starts_with("/*")) {
      const std::size_t end = rest.find("*/", 2);
      if (end != std::string_view::npos) {
        i += end + 2;
        continue;
      }
    }
    if (rest.starts_with("//")) {
      const std::size_t end = rest.find_first_of("\n\r");
      i += end == std::string_view::npos ? rest.size() : end;
      continue;
    }
    kept += text[i++];
  }
  return kept;
}

// Writes what is inside of one pair of braces, or the whole text: the first of its alternatives.
// `skip`: only looks for the end.
class Chooser {
 public:
  explicit Chooser(std::string_view text) : text_(text) {}

  std::string choose() {
    std::string out;
    std::size_t depth = 0;       // of braces that are open
    std::size_t skip_depth = 0;  // of the braces whose later alternatives are passed over; 0: none
    for (std::size_t i = 0; i < text_.size(); ++i) {
      const char c = text_[i];
      const bool is_kept = skip_depth == 0;
      if (c == '\\') {
        const std::string_view pair = text_.substr(i, 2);
        const bool is_escape =
            pair.size() == 2 && (pair[1] == '{' || pair[1] == '}' || pair[1] == '|');
        if (is_kept) out += is_escape ? pair.substr(1) : pair;
        ++i;
      } else if (c == '{') {
        ++depth;
      } else if (c == '}' && depth > 0) {
        if (skip_depth == depth) skip_depth = 0;
        --depth;
      } else if (c == '|' && depth > 0) {
        if (is_kept) skip_depth = depth;
      } else if (is_kept) {
        out += c;
      }
    }
    return out;
  }

 private:
  std::string_view text_;
};

// Codes of a date, longest first, and what savers call them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kDateCodes = {
    {{"yyyy", "%year%"},
     {"MM", "%month%"},
     {"dd", "%day%"},
     {"hh", "%hour%"},
     {"mm", "%minute%"},
     {"ss", "%second%"}}};

std::optional<std::string> date_codes(std::string_view format) {
  std::string out;
  while (!format.empty()) {
    std::size_t taken = 0;
    for (const auto& [code, name] : kDateCodes)
      if (taken == 0 && format.starts_with(code)) {
        out += name;
        taken = code.size();
      }
    if (taken == 0) {
      const std::string_view other = "yMdhms";
      const bool is_short = other.find(format[0]) != std::string_view::npos;
      // A lone "y" is text; shorter forms of the others are something that savers do not know.
      if (is_short && (format[0] != 'y' || format.starts_with("yy"))) return std::nullopt;
      out += format[0];
      taken = 1;
    }
    format.remove_prefix(taken);
  }
  return out;
}

std::string file_name_part(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f ||
        std::string_view("/?<>\\:*|\"").find(c) != std::string_view::npos)
      c = '_';
  return text;
}

std::optional<std::string> meaning(std::string_view code, const WidgetText& value_of) {
  const std::size_t dot = code.find('.');
  if (code.starts_with("date:") && dot == std::string_view::npos) return date_codes(code.substr(5));
  if (dot == std::string_view::npos || code.find('.', dot + 1) != std::string_view::npos)
    return std::nullopt;
  std::optional<std::string> value = value_of(code.substr(0, dot), code.substr(dot + 1));
  if (value) value = file_name_part(*std::move(value));
  return value;
}

}  // namespace

std::string plain_prompt(std::string_view text) { return Chooser(without_comments(text)).choose(); }

std::string replaced_text(std::string_view text, const WidgetText& value_of) {
  std::string out;
  while (!text.empty()) {
    const std::size_t begin = text.find('%');
    const std::size_t end = begin == std::string_view::npos ? begin : text.find('%', begin + 1);
    if (end == std::string_view::npos) break;
    out += text.substr(0, begin);
    const std::string_view code = text.substr(begin + 1, end - begin - 1);
    const std::optional<std::string> meant = code.empty() ? std::nullopt : meaning(code, value_of);
    if (code.empty()) {  // "%%": the second one may begin a code
      out += '%';
      text.remove_prefix(end);
      continue;
    }
    out += meant ? *meant : std::string(text.substr(begin, end + 1 - begin));
    text.remove_prefix(end + 1);
  }
  return out.append(text);
}

}  // namespace heddle::engine
