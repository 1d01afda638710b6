#include "prompt_weights.h"

#include <charconv>
#include <limits>
#include <optional>
#include <string>

namespace heddle::text {
namespace {

constexpr double kParenthesisWeight = 1.1;
constexpr int kDeepest = 256;
constexpr std::string_view kEmbedding = "embedding:";
constexpr std::string_view kSpaces = " \t\n\v\f\r";

// Escaped parentheses while the prompt is parsed: bytes that UTF-8 does not have, so no text holds
// them.
constexpr char kEscapedOpen = '\xFE';
constexpr char kEscapedClose = '\xFF';

std::string escapes_hidden(std::string_view prompt) {
  std::string out;
  out.reserve(prompt.size());
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

// Pieces of a text at the outermost level: a group with both its parentheses, or what is between
// groups. A closing parenthesis without a partner makes the level negative, and groups are found
// again only when it is back at zero.
class OuterPieces {
 public:
  explicit OuterPieces(std::string_view text) : text_(text) {}

  // None is empty; empty at the end.
  std::string_view next() {
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '(' && level_++ == 0 && at_ - 1 > start_) return take(at_ - 1);
      if (c == ')' && --level_ == 0) return take(at_);
    }
    return take(text_.size());
  }

 private:
  std::string_view take(std::size_t end) {
    const std::string_view piece = text_.substr(start_, end - start_);
    start_ = end;
    return piece;
  }

  const std::string_view text_;
  std::size_t at_ = 0, start_ = 0;
  long level_ = 0;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trimmed(std::string_view text) {
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

// No deeper than kDeepest.
void add_weighted(std::string_view text, double weight, int depth, Work& work,
                  Sink<const WeightedText&> out) {
  work.did(text.size());
  if (depth > kDeepest) {
    if (!text.empty()) out({text, weight});
    return;
  }
  OuterPieces pieces(text);
  for (std::string_view piece = pieces.next(); !piece.empty(); piece = pieces.next()) {
    if (piece.size() < 2 || piece.front() != '(' || piece.back() != ')') {
      out({piece, weight});
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
    add_weighted(piece, inner, depth + 1, work, out);
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

void cut_at_embeddings(const WeightedText& run, Sink<const WeightedText&> out) {
  const std::string shown = escapes_shown(run.text);
  const std::string_view text = shown;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t next = find_embedding(text, start);
    const bool last = next == std::string_view::npos;
    const std::size_t end = last ? text.size() : next - 1;
    if (end > start) out({text.substr(start, end - start), run.weight});
    if (last) break;
    start = next;
  }
}

// A segment of "embedding:name, rest" in its parts.
struct NamedEmbedding {
  std::string_view name;  // without the commas behind it
  std::string rest;       // to be drawn: those commas and the words behind, blanks between them
};

NamedEmbedding read_embedding(std::string_view segment) {
  NamedEmbedding found;
  std::string_view text = segment.substr(kEmbedding.size());
  bool is_first = true;
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
    const std::string_view word = text.substr(0, text.find_first_of(kSpaces));
    text.remove_prefix(word.size());
    if (is_first) {
      const std::size_t last = word.find_last_not_of(',');
      found.name = word.substr(0, last == std::string_view::npos ? 0 : last + 1);
      found.rest = word.substr(found.name.size());
      if (!found.rest.empty()) found.rest += ' ';
    } else {
      if (!found.rest.empty() && found.rest.back() != ' ') found.rest += ' ';
      found.rest += word;
    }
    is_first = false;
  }
  return found;
}

// All segments, those of embeddings as they are written.
void written_segments(std::string_view prompt, WeightSyntax syntax, Work& work,
                      Sink<const WeightedText&> out) {
  const std::string hidden = escapes_hidden(prompt);
  const auto cut = [&](const WeightedText& run) { cut_at_embeddings(run, out); };
  if (syntax == WeightSyntax::kParsed) {
    add_weighted(hidden, 1.0, 0, work, cut);
  } else {
    cut({hidden, 1.0});
  }
}

}  // namespace

void weighted_segments(std::string_view prompt, WeightSyntax syntax, Work& work,
                       Sink<const WeightedText&> out, const FindEmbedding& find) {
  written_segments(prompt, syntax, work, [&](const WeightedText& segment) {
    if (!segment.text.starts_with(kEmbedding)) return out(segment);
    const NamedEmbedding embedding = read_embedding(segment.text);
    const EmbeddingIds ids =
        find && !embedding.name.empty() ? find(embedding.name) : EmbeddingIds();
    if (ids.count > 0) out({{}, segment.weight, ids});
    if (!embedding.rest.empty()) out({embedding.rest, segment.weight});
  });
}

void named_embeddings(std::string_view prompt, WeightSyntax syntax, Work& work,
                      Sink<std::string_view> out) {
  written_segments(prompt, syntax, work, [&](const WeightedText& segment) {
    if (segment.text.starts_with(kEmbedding)) out(read_embedding(segment.text).name);
  });
}

}  // namespace heddle::text
