#include "regex_dialect.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "unicode_versions.h"

namespace heddle::text {
namespace {

constexpr auto kLongNames = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"letter", "l"},
    {"uppercaseletter", "lu"},
    {"lowercaseletter", "ll"},
    {"modifierletter", "lm"},
    {"otherletter", "lo"},
    {"mark", "m"},
    {"combiningmark", "m"},
    {"nonspacingmark", "mn"},
    {"spacingmark", "mc"},
    {"number", "n"},
    {"decimalnumber", "nd"},
    {"othernumber", "no"},
    {"punctuation", "p"},
    {"otherpunctuation", "po"},
    {"dashpunctuation", "pd"},
    {"symbol", "s"},
    {"mathsymbol", "sm"},
    {"othersymbol", "so"},
});

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// Property names ignore case, spaces, hyphens and underscores (Unicode TR 18, 1.2).
std::string short_name(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c != ' ' && c != '-' && c != '_') plain.push_back(lower(c));
  }
  for (const auto& [full, brief] : kLongNames) {
    if (plain == full) return std::string(brief);
  }
  return plain;
}

bool is_part_of(std::string_view category, std::string_view wanted) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (i >= category.size() || lower(category[i]) != wanted[i]) return false;
  }
  return !wanted.empty();
}

std::string additions(std::string_view wanted) {
  std::string out;
  for (const CategoryRange& range : kNewerCategories) {
    if (!is_part_of(range.category, wanted)) continue;
    std::array<char, 48> text{};
    std::snprintf(text.data(), text.size(), "\\x{%X}-\\x{%X}", static_cast<unsigned>(range.first),
                  static_cast<unsigned>(range.last));
    out += text.data();
  }
  return out;
}

std::string widened_class(std::string_view escape, bool negated, const std::string& more) {
  return std::string(negated ? "[^" : "[") + std::string(escape) + more + "]";
}

std::string widened_property(std::string_view name, bool negated) {
  if (!name.empty() && name.front() == '^') {
    negated = !negated;
    name.remove_prefix(1);
  }
  const std::string escape = "\\p{" + std::string(name) + "}";
  const std::string more = additions(short_name(name));
  if (!more.empty()) return widened_class(escape, negated, more);
  return (negated ? "\\P{" : "\\p{") + std::string(name) + "}";
}

// Outside of brackets Oniguruma takes the Latin-1 part of \w from another table than inside, so the
// escape itself has to stay where it is.
std::string widened_escape(char letter, bool in_brackets) {
  const bool negated = letter == 'W' || letter == 'D';
  const bool digit = letter == 'd' || letter == 'D';
  const std::string more =
      digit ? additions("nd") : additions("l") + additions("m") + additions("nd");
  if (in_brackets) return widened_class(digit ? "\\d" : "\\w", negated, more);
  const std::string escape = std::string("\\") + letter;
  return negated ? "(?:(?![" + more + "])" + escape + ")" : "(?:" + escape + "|[" + more + "])";
}

// Follows a pattern through its bracket expressions.
class Brackets {
 public:
  bool inside() const { return depth_ > 0; }

  // The next character that is not part of an escape. Returns how many characters to copy.
  std::size_t step(std::string_view pattern, std::size_t at) {
    if (pattern[at] == '[') {
      const std::size_t posix_end = inside() && pattern.substr(at).starts_with("[:")
                                        ? pattern.find(":]", at + 2)
                                        : std::string_view::npos;
      if (posix_end != std::string_view::npos) return posix_end + 2 - at;
      ++depth_;
      const std::size_t start = pattern.substr(at + 1).starts_with('^') ? 2 : 1;
      return pattern.substr(at + start).starts_with(']') ? start + 1 : start;
    }
    if (pattern[at] == ']' && inside()) --depth_;
    return 1;
  }

 private:
  int depth_ = 0;
};

// What follows the end of an alternative here may be more of the pattern after all: it calls
// itself, or parentheses in comments are none.
bool is_unclear(std::string_view pattern) {
  if (pattern.find("\\g") != std::string_view::npos) return true;
  for (std::size_t at = pattern.find("(?"); at != std::string_view::npos;
       at = pattern.find("(?", at + 2)) {
    const std::size_t end = pattern.find_first_not_of("imxWDSPyaudls-", at + 2);
    const std::string_view options = pattern.substr(at + 2, end - at - 2);
    if (options.find('x') != std::string_view::npos || pattern.substr(at + 2).starts_with('#'))
      return true;
  }
  return false;
}

}  // namespace

std::string possessive_pattern(std::string_view pattern) {
  if (is_unclear(pattern)) return std::string(pattern);
  std::string out;
  Brackets brackets;
  int groups = 0;               // that are open
  bool is_after_class = false;  // one character of a class stands before
  for (std::size_t at = 0; at < pattern.size();) {
    const char c = pattern[at];
    std::size_t count = 1;
    const bool was_after_class = std::exchange(is_after_class, false);
    if (c == '\\' && at + 1 < pattern.size()) {
      const char letter = pattern[at + 1];
      const bool has_name = std::string_view("pPx").find(letter) != std::string_view::npos &&
                            pattern.substr(at + 2).starts_with('{');
      count = has_name ? std::min(pattern.find('}', at), pattern.size() - 1) + 1 - at : 2;
      is_after_class =
          !brackets.inside() && std::string_view("pPsSwWdD").find(letter) != std::string_view::npos;
    } else {
      const bool was_inside = brackets.inside();
      count = brackets.step(pattern, at);
      if (!was_inside && c == '(') ++groups;
      if (!was_inside && c == ')') --groups;
      is_after_class = !brackets.inside() && (c == '.' || (was_inside && c == ']'));
    }
    out += pattern.substr(at, count);
    at += count;
    const bool is_last = groups == 0 && (at == pattern.size() || pattern[at] == '|');
    if (was_after_class && (c == '+' || c == '*') && is_last) out.push_back('+');
  }
  return out;
}

std::string widened_pattern(std::string_view pattern) {
  std::string out;
  Brackets brackets;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '\\' || at + 1 == pattern.size()) {
      const std::size_t count = brackets.step(pattern, at);
      out += pattern.substr(at, count);
      at += count - 1;
      continue;
    }
    const char letter = pattern[++at];
    const bool has_name =
        (letter == 'p' || letter == 'P') && at + 1 < pattern.size() && pattern[at + 1] == '{';
    const std::size_t close = has_name ? pattern.find('}', at) : std::string_view::npos;
    if (close != std::string_view::npos) {
      out += widened_property(pattern.substr(at + 2, close - at - 2), letter == 'P');
      at = close;
    } else if (letter == 'w' || letter == 'W' || letter == 'd' || letter == 'D') {
      out += widened_escape(letter, brackets.inside());
    } else {
      out.push_back('\\');
      out.push_back(letter);
    }
  }
  return out;
}

std::string word_class() {
  return widened_pattern("[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}\\p{L}]");
}

}  // namespace heddle::text
