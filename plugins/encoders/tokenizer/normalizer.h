// The normaliser of a tokenizer.json: a list of steps, each a function from text to text. Sequences
// are flattened by the reader. Immutable, any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "charsmap.h"
#include "regex.h"
#include "spiece_normalizer.h"
#include "unicode.h"
#include "work.h"

namespace heddle::text {

struct LowerCaseStep {};

struct StripStep {
  bool left = true, right = true;
};

struct ReplaceStep {
  Regex pattern;
  std::string content;  // taken literally, no references to groups
};

struct PrependStep {
  std::string content;  // an empty text stays empty
};

// The map, applied to whole grapheme clusters below six bytes and else character by character.
struct CharsmapStep {
  std::shared_ptr<const Charsmap> map;
};

// Everything that SentencePiece does before its model.
struct SpieceStep {
  std::shared_ptr<const SpieceRules> rules;
};

using NormalizerStep = std::variant<NormalForm, LowerCaseStep, StripStep, ReplaceStep, PrependStep,
                                    CharsmapStep, SpieceStep>;

class Normalizer {
 public:
  Normalizer() = default;

  // `where` names the file.
  Normalizer(std::vector<NormalizerStep> steps, std::string where)
      : steps_(std::move(steps)), where_(std::move(where)) {}

  // REQUIRES: valid UTF-8, and gives it. Throws TextError when a pattern backtracks too much or the
  // text grows beyond 64 times its length, and Cancelled.
  std::string apply(std::string_view text, Work& work) const;

 private:
  std::vector<NormalizerStep> steps_;
  std::string where_;
};

}  // namespace heddle::text
