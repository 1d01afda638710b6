#include "prompt_weights.h"

#include <charconv>
#include <limits>
#include <optional>

namespace heddle::text {
namespace {

constexpr double kParenthesisWeight = 1.1;
constexpr int kDeepest = 256;
constexpr std::string_view kEmbedding = "embedding:";

// Escaped parentheses while the prompt is parsed: bytes that UTF-8 does not have, so no text holds
// them.
constexpr char kEscapedOpen = '\xFE';
constexpr char kEscapedClose = '\xFF';

std::string escapes_hidden(std::string_view prompt) {
  std::string out;
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    const char next = i + 1 < prompt.size() ? prompt[i + 1] : '\0';
    if (prompt[i] == '\\' && (next == '(' || next == ')')) {
      out.push_back(next == '(' ? kEscapedOpen : kEscapedClose);
      ++i;
    } else if (prompt[i] == kEscapedOpen || prompt[i] == kEscapedClose) {
      out += "\xEF\xBF\xBD";
    } else {
      out.push_back(prompt[i]);
    }
  }
  return out;
}

std::string escapes_shown(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c == kEscapedOpen) c = '(';
    if (c == kEscapedClose) c = ')';
  }
  return out;
}

// Pieces of `text` at the outermost level: a group with both its parentheses, or what is between
// groups. A closing parenthesis without a partner makes the level negative, and groups are found
// again only when it is back at zero.
std::vector<std::string_view> outer_pieces(std::string_view text) {
  std::vector<std::string_view> pieces;
  long level = 0;
  std::size_t start = 0;
  const auto cut = [&](std::size_t end) {
    if (end > start) pieces.push_back(text.substr(start, end - start));
    start = end;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') {
      if (level == 0) cut(i);
      ++level;
    } else if (text[i] == ')') {
      --level;
      if (level == 0) cut(i + 1);
    }
  }
  cut(text.size());
  return pieces;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\n\v\f\r";
  const std::size_t first = text.find_first_not_of(kSpaces);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
}

// A decimal number the way Python's float() takes it: signs, exponents, single underscores between
// digits, "inf", "nan", white space around it.
std::optional<double> read_number(std::string_view text) {
  text = trimmed(text);
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      plain.push_back(text[i]);
    } else if (i == 0 || i + 1 == text.size() || !is_digit(text[i - 1]) || !is_digit(text[i + 1])) {
      return std::nullopt;
    }
  }
  std::string_view digits = plain;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.empty() || digits[0] == '-' || digits[0] == '+') return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size() || digits.back() == ')') return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    // from_chars does not say which way; Python gives infinity or zero.
    const std::size_t exponent = digits.find_first_of("eE");
    const bool tiny = exponent != std::string_view::npos
                          ? digits.substr(exponent + 1).starts_with('-')
                          : digits.starts_with("0") || digits.starts_with(".");
    value = tiny ? 0.0 : std::numeric_limits<double>::infinity();
  } else if (error != std::errc()) {
    return std::nullopt;
  }
  return negative ? -value : value;
}

void add_weighted(std::string_view text, double weight, int depth, std::vector<WeightedText>& out) {
  if (depth > kDeepest) {
    out.push_back({std::string(text), weight});
    return;
  }
  for (std::string_view piece : outer_pieces(text)) {
    if (piece.size() < 2 || piece.front() != '(' || piece.back() != ')') {
      out.push_back({std::string(piece), weight});
      continue;
    }
    piece = piece.substr(1, piece.size() - 2);
    double inner = weight * kParenthesisWeight;
    const std::size_t colon = piece.rfind(':');
    if (colon != std::string_view::npos && colon > 0) {
      if (const auto number = read_number(piece.substr(colon + 1))) {
        inner = *number;
        piece = piece.substr(0, colon);
      }
    }
    add_weighted(piece, inner, depth + 1, out);
  }
}

// The first "embedding:" with a space or a line feed in front, from `from` on.
std::size_t find_embedding(std::string_view text, std::size_t from) {
  for (std::size_t at = text.find(kEmbedding, from); at != std::string_view::npos;
       at = text.find(kEmbedding, at + 1)) {
    if (at > from && (text[at - 1] == ' ' || text[at - 1] == '\n')) return at;
  }
  return std::string_view::npos;
}

void add_segments(const WeightedText& run, std::vector<WeightedText>& out) {
  const std::string text = escapes_shown(run.text);
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t next = find_embedding(text, start);
    const bool last = next == std::string::npos;
    const std::size_t end = last ? text.size() : next - 1;
    if (end > start) out.push_back({text.substr(start, end - start), run.weight});
    if (last) break;
    start = next;
  }
}

}  // namespace

std::vector<WeightedText> weighted_segments(std::string_view prompt, WeightSyntax syntax) {
  const std::string hidden = escapes_hidden(prompt);
  std::vector<WeightedText> runs;
  if (syntax == WeightSyntax::kParsed) {
    add_weighted(hidden, 1.0, 0, runs);
  } else {
    runs.push_back({hidden, 1.0});
  }
  std::vector<WeightedText> segments;
  for (const WeightedText& run : runs) add_segments(run, segments);
  return segments;
}

}  // namespace heddle::text
