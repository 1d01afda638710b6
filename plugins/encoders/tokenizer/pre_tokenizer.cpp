#include "pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include "regex_dialect.h"
#include "unicode.h"
#include "utf8.h"

namespace heddle::text {
namespace {

struct Part {
  Span span;
  bool is_match;
};

std::vector<Part> parts_of(std::string_view text, const std::vector<Span>& matches) {
  std::vector<Part> parts;
  std::size_t done = 0;
  for (const Span& match : matches) {
    if (match.begin > done) parts.push_back({{done, match.begin}, false});
    parts.push_back({match, true});
    done = match.end;
  }
  if (done < text.size()) parts.push_back({{done, text.size()}, false});
  return parts;
}

template <typename Predicate>
std::vector<Part> character_parts(std::string_view text, Predicate is_match) {
  std::vector<Span> matches;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint next = decode_at(text, at);
    if (is_match(next.value)) matches.push_back({at, at + next.size});
    at += next.size;
  }
  return parts_of(text, matches);
}

std::vector<Span> contiguous(const std::vector<Part>& parts) {
  std::vector<Span> out;
  bool last = false;
  for (const Part& part : parts) {
    if (part.is_match == last && !out.empty()) {
      out.back().end = part.span.end;
    } else {
      out.push_back(part.span);
    }
    last = part.is_match;
  }
  return out;
}

std::vector<Span> merged_with_previous(const std::vector<Part>& parts) {
  std::vector<Span> out;
  bool last = false;
  for (const Part& part : parts) {
    if (part.is_match && !last && !out.empty()) {
      out.back().end = part.span.end;
    } else {
      out.push_back(part.span);
    }
    last = part.is_match;
  }
  return out;
}

std::vector<Span> merged_with_next(const std::vector<Part>& parts) {
  std::vector<Span> out;
  bool last = false;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (part->is_match && !last && !out.empty()) {
      out.back().begin = part->span.begin;
    } else {
      out.push_back(part->span);
    }
    last = part->is_match;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<Span> kept(const std::vector<Part>& parts, SplitBehavior behavior) {
  if (behavior == SplitBehavior::kContiguous) return contiguous(parts);
  if (behavior == SplitBehavior::kMergedWithPrevious) return merged_with_previous(parts);
  if (behavior == SplitBehavior::kMergedWithNext) return merged_with_next(parts);
  std::vector<Span> out;
  for (const Part& part : parts) {
    if (behavior == SplitBehavior::kIsolated || !part.is_match) out.push_back(part.span);
  }
  return out;
}

void append(std::vector<TextPiece>& out, const TextPiece& from, const std::vector<Span>& spans) {
  for (const Span& span : spans) {
    if (span.begin == span.end) continue;
    out.push_back(
        {from.text.substr(span.begin, span.end - span.begin), from.is_first && span.begin == 0});
  }
}

void run(const SplitStep& step, TextPiece piece, std::vector<TextPiece>& out) {
  std::vector<Part> parts = parts_of(piece.text, step.pattern.find_all(piece.text));
  if (step.matches == SplitMatches::kBetween) {
    for (Part& part : parts) part.is_match = !part.is_match;
  }
  append(out, piece, kept(parts, step.behavior));
}

std::string byte_level_text(std::string_view text) {
  std::string out;
  out.reserve(text.size() * 2);
  for (const char c : text) append_utf8(out, byte_level_character(static_cast<unsigned char>(c)));
  return out;
}

void run(const ByteLevelStep& step, TextPiece piece, std::vector<TextPiece>& out) {
  if (step.add_prefix_space && piece.text.front() != ' ') piece.text.insert(0, 1, ' ');
  std::vector<TextPiece> words;
  if (step.pattern.empty()) {
    words.push_back(std::move(piece));
  } else {
    const auto matches = step.pattern.front().find_all(piece.text);
    append(words, piece, kept(parts_of(piece.text, matches), SplitBehavior::kIsolated));
  }
  for (const TextPiece& word : words) out.push_back({byte_level_text(word.text), word.is_first});
}

void run(const MetaspaceStep& step, TextPiece piece, std::vector<TextPiece>& out) {
  std::string mark;
  append_utf8(mark, step.replacement);
  std::string text;
  for (const char c : piece.text) {
    if (c == ' ') {
      text += mark;
    } else {
      text.push_back(c);
    }
  }
  const bool prepend = step.prepend == PrependScheme::kAlways ||
                       (step.prepend == PrependScheme::kFirst && piece.is_first);
  if (prepend && !text.starts_with(mark)) text.insert(0, mark);
  piece.text = std::move(text);
  if (!step.split) {
    out.push_back(std::move(piece));
    return;
  }
  const auto is_mark = [&](char32_t c) { return c == step.replacement; };
  append(out, piece, merged_with_next(character_parts(piece.text, is_mark)));
}

void run(const WhiteSpaceSplitStep&, TextPiece piece, std::vector<TextPiece>& out) {
  append(out, piece, kept(character_parts(piece.text, is_white_space), SplitBehavior::kRemoved));
}

void run(const DigitsStep& step, TextPiece piece, std::vector<TextPiece>& out) {
  const auto behavior = step.individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous;
  append(out, piece, kept(character_parts(piece.text, is_number), behavior));
}

}  // namespace

std::vector<TextPiece> PreTokenizer::split(TextPiece text) const {
  std::vector<TextPiece> pieces;
  if (!text.text.empty()) pieces.push_back(std::move(text));
  for (const PreTokenizerStep& step : steps_) {
    std::vector<TextPiece> next;
    next.reserve(pieces.size());
    for (TextPiece& piece : pieces) {
      std::visit([&](const auto& one) { run(one, std::move(piece), next); }, step);
    }
    pieces = std::move(next);
  }
  return pieces;
}

Regex byte_level_pattern() {
  return Regex::compile(
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", "ByteLevel");
}

Regex word_pattern() {
  const std::string word = word_class();
  return Regex::compile(word + "+|[^\\s" + word + "]+", "Whitespace");
}

char32_t byte_level_character(unsigned char byte) {
  if (byte <= 0x20) return 0x100U + byte;
  if (byte >= 0x7F && byte <= 0xA0) return 0x121U + (byte - 0x7FU);
  return byte == 0xAD ? 0x143U : byte;
}

}  // namespace heddle::text
