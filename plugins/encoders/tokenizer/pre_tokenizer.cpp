#include "pre_tokenizer.h"

#include <optional>
#include <utility>

#include "regex_dialect.h"
#include "unicode.h"
#include "utf8.h"

namespace heddle::text {
namespace {

// A match, or what lies between two of them.
struct Part {
  Span span;
  bool is_match;
};
using Parts = Sink<const Part&>;

// The parts of a text of `size` bytes, from its matches.
class PartCutter {
 public:
  PartCutter(std::size_t size, Parts out) : size_(size), out_(out) {}

  void match(const Span& span) {
    if (span.begin > done_) out_({{done_, span.begin}, false});
    out_({span, true});
    done_ = span.end;
  }
  void finish() {
    if (done_ < size_) out_({{done_, size_}, false});
  }

 private:
  const std::size_t size_;
  const Parts out_;
  std::size_t done_ = 0;
};

template <typename Predicate>
void character_parts(std::string_view text, Predicate is_match, Parts out) {
  PartCutter cutter(text.size(), out);
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint next = decode_at(text, at);
    if (is_match(next.value)) cutter.match({at, at + next.size});
    at += next.size;
  }
  cutter.finish();
}

// What a behaviour makes of parts, one after another.
class Joiner {
 public:
  Joiner(const TextPiece& from, SplitBehavior behavior, Work& work, Sink<TextPiece> out)
      : from_(from), behavior_(behavior), work_(work), out_(out) {}

  void add(const Part& part) {
    work_.did(part.span.end - part.span.begin + 1);
    if (behavior_ == SplitBehavior::kRemoved && part.is_match) return;
    if (open_ && joins(part)) {
      open_->span.end = part.span.end;
      open_->is_match = part.is_match;
      return;
    }
    finish();
    open_ = part;
  }

  void finish() {
    if (open_ && open_->span.begin < open_->span.end) {
      const auto [begin, end] = open_->span;
      out_({from_.text.substr(begin, end - begin), from_.is_first && begin == 0});
    }
    open_.reset();
  }

 private:
  // With the part before it, whose last part is what open_ tells.
  bool joins(const Part& part) const {
    switch (behavior_) {
      case SplitBehavior::kContiguous:
        return part.is_match == open_->is_match;
      case SplitBehavior::kMergedWithPrevious:
        return part.is_match && !open_->is_match;
      case SplitBehavior::kMergedWithNext:
        return !part.is_match && open_->is_match;
      default:
        return false;
    }
  }

  const TextPiece& from_;
  const SplitBehavior behavior_;
  Work& work_;
  const Sink<TextPiece> out_;
  std::optional<Part> open_;
};

template <typename Predicate>
void split_characters(const TextPiece& piece, Predicate is_match, SplitBehavior behavior,
                      Work& work, Sink<TextPiece> out) {
  Joiner joiner(piece, behavior, work, out);
  character_parts(piece.text, is_match, [&](const Part& part) { joiner.add(part); });
  joiner.finish();
}

void split_matches(const TextPiece& piece, const Regex& pattern, SplitMatches what,
                   SplitBehavior behavior, Work& work, Sink<TextPiece> out) {
  Joiner joiner(piece, behavior, work, out);
  const bool between = what == SplitMatches::kBetween;
  const auto add = [&](const Part& part) { joiner.add({part.span, part.is_match != between}); };
  PartCutter cutter(piece.text.size(), add);
  Regex::Matches matches = pattern.matches(piece.text);
  while (const std::optional<Span> match = matches.next()) cutter.match(*match);
  cutter.finish();
  joiner.finish();
}

void run(const SplitStep& step, const TextPiece& piece, Work& work, Sink<TextPiece> out) {
  split_matches(piece, step.pattern, step.matches, step.behavior, work, out);
}

std::string byte_level_text(std::string_view text) {
  std::string out;
  out.reserve(text.size() * 2);
  for (const char c : text) append_utf8(out, byte_level_character(static_cast<unsigned char>(c)));
  return out;
}

void run(const ByteLevelStep& step, const TextPiece& piece, Work& work, Sink<TextPiece> out) {
  std::string spaced;
  TextPiece all = piece;
  if (step.add_prefix_space && piece.text.front() != ' ') {
    spaced.reserve(piece.text.size() + 1);
    spaced.push_back(' ');
    spaced += piece.text;
    all.text = spaced;
  }
  const auto write = [&](TextPiece word) { out({byte_level_text(word.text), word.is_first}); };
  if (step.pattern.empty()) {
    write(all);
  } else {
    split_matches(all, step.pattern.front(), SplitMatches::kPattern, SplitBehavior::kIsolated, work,
                  write);
  }
}

// Pieces begin where marks do.
void run(const MetaspaceStep& step, const TextPiece& piece, Work& work, Sink<TextPiece> out) {
  std::string mark;
  append_utf8(mark, step.replacement);
  std::string open;
  bool is_first = piece.is_first;
  const auto finish = [&] {
    if (!open.empty()) out({open, std::exchange(is_first, false)});
    open.clear();
  };
  const bool prepend = step.prepend == PrependScheme::kAlways ||
                       (step.prepend == PrependScheme::kFirst && piece.is_first);
  if (prepend && piece.text.front() != ' ' && !piece.text.starts_with(mark)) open = mark;
  for (std::size_t at = 0; at < piece.text.size();) {
    const std::size_t size = decode_at(piece.text, at).size;
    const std::string_view character = piece.text.substr(at, size);
    const bool is_mark = character == " " || character == mark;
    if (is_mark && step.split) finish();
    open += is_mark ? std::string_view(mark) : character;
    work.did(size);
    at += size;
  }
  finish();
}

void run(const WhiteSpaceSplitStep&, const TextPiece& piece, Work& work, Sink<TextPiece> out) {
  split_characters(piece, is_white_space, SplitBehavior::kRemoved, work, out);
}

void run(const DigitsStep& step, const TextPiece& piece, Work& work, Sink<TextPiece> out) {
  const auto behavior = step.individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous;
  split_characters(piece, is_number, behavior, work, out);
}

}  // namespace

void PreTokenizer::run_from(std::size_t step, TextPiece piece, Work& work,
                            Sink<TextPiece> out) const {
  if (piece.text.empty()) return;
  if (step == steps_.size()) return out(piece);
  const auto next = [&](TextPiece part) { run_from(step + 1, part, work, out); };
  std::visit([&](const auto& one) { run(one, piece, work, next); }, steps_[step]);
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
