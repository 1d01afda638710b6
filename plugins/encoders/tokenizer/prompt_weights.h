// The weight syntax of prompts, as ComfyUI reads it: "(a)" counts 1.1 times, "(a:1.3)" 1.3 times,
// parentheses nest (weights of plain ones multiply, a number replaces what is inherited), "\(" and
// "\)" are parentheses to be drawn. Other parentheses, those without a partner, are text. Pure, any
// thread.
#pragma once

#include <string_view>

#include "sink.h"
#include "work.h"

namespace heddle::text {

enum class WeightSyntax {
  kParsed,
  kIgnored
};  // kIgnored: every weight is 1; escapes are still read

struct WeightedText {
  std::string_view text;  // borrowed
  double weight = 1;
};

// The segments of a prompt, in order, none empty: one for every run between parentheses, cut again
// before every "embedding:" that follows a space or a line feed (which is dropped). Tokenisers see
// one segment at a time. A segment that begins with "embedding:" loses its first word, with commas
// behind it kept: as ComfyUI does with an embedding that is not there, and no file of one is read.
// Time: length times the depth of nesting; text nested deeper than 256 parentheses keeps them as
// text. Throws Cancelled.
void weighted_segments(std::string_view prompt, WeightSyntax syntax, Work& work,
                       Sink<const WeightedText&> out);

// The names behind "embedding:" that weighted_segments() leaves out, in order.
void named_embeddings(std::string_view prompt, WeightSyntax syntax, Work& work,
                      Sink<std::string_view> out);

}  // namespace heddle::text
