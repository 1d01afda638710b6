// The pre-tokeniser of a tokenizer.json: a list of steps that cut a normalised text into pieces
// (and may rewrite them); the model then sees each piece by itself. Sequences are flattened by the
// reader. Immutable, any thread.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "regex.h"
#include "sink.h"
#include "work.h"

namespace heddle::text {

// What becomes of the matches of a pattern.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// What counts as a match: the pattern's matches, or what lies between them.
enum class SplitMatches { kPattern, kBetween };

struct SplitStep {
  Regex pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  SplitMatches matches = SplitMatches::kPattern;
};

// Bytes become the 256 printable characters of byte-level BPE, after cutting into words by the
// GPT-2 pattern if there is one.
struct ByteLevelStep {
  bool add_prefix_space = false;
  std::vector<Regex> pattern;  // none or one
};

enum class PrependScheme { kAlways, kFirst, kNever };

// Spaces become `replacement`, which starts a new piece if `split`.
struct MetaspaceStep {
  char32_t replacement = 0x2581;
  PrependScheme prepend = PrependScheme::kAlways;
  bool split = true;
};

struct WhiteSpaceSplitStep {};

struct DigitsStep {
  bool individual = false;
};

using PreTokenizerStep =
    std::variant<SplitStep, ByteLevelStep, MetaspaceStep, WhiteSpaceSplitStep, DigitsStep>;

struct TextPiece {
  std::string_view text;  // borrowed
  bool is_first = false;  // it starts where the input starts
};

class PreTokenizer {
 public:
  PreTokenizer() = default;
  explicit PreTokenizer(std::vector<PreTokenizerStep> steps) : steps_(std::move(steps)) {}

  // Pieces in order, none empty; each is through all steps before the next is begun. REQUIRES:
  // valid UTF-8. Throws TextError when a pattern backtracks too much, and Cancelled.
  void split(TextPiece text, Work& work, Sink<TextPiece> out) const {
    run_from(0, text, work, out);
  }

  // Whether pieces are bytes in the characters of byte-level BPE.
  bool is_byte_level() const {
    for (const PreTokenizerStep& step : steps_)
      if (std::holds_alternative<ByteLevelStep>(step)) return true;
    return false;
  }

 private:
  void run_from(std::size_t step, TextPiece piece, Work& work, Sink<TextPiece> out) const;

  std::vector<PreTokenizerStep> steps_;
};

// The pattern that ByteLevel cuts by.
Regex byte_level_pattern();

// The words of the Whitespace pre-tokeniser: word characters, or other visible ones.
Regex word_pattern();

// The character that byte-level BPE writes for `byte`: printable bytes of Latin-1 stand for
// themselves, the others for U+0100 onwards in order.
char32_t byte_level_character(unsigned char byte);

}  // namespace heddle::text
