// The weight syntax of prompts, as ComfyUI reads it: "(a)" counts 1.1 times, "(a:1.3)" 1.3 times,
// parentheses nest (weights of plain ones multiply, a number replaces what is inherited), "\(" and
// "\)" are parentheses to be drawn. Other parentheses, those without a partner, are text. Pure, any
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "sink.h"
#include "work.h"

namespace heddle::text {

enum class WeightSyntax {
  kParsed,
  kIgnored
};  // kIgnored: every weight is 1; escapes are still read

// The vectors of an embedding, by ids that tokens do not have.
struct EmbeddingIds {
  std::int32_t first = 0;
  std::uint32_t count = 0;  // 0: there is no such embedding
};
using FindEmbedding = std::function<EmbeddingIds(std::string_view name)>;

struct WeightedText {
  std::string_view text;  // borrowed; empty where it is an embedding
  double weight = 1;
  EmbeddingIds embedding = {};
};

// The segments of a prompt, in order, none empty: one for every run between parentheses, cut again
// before every "embedding:" that follows a space or a line feed (which is dropped). Tokenisers see
// one segment at a time. Of a segment that begins with "embedding:" the first word, without commas
// behind it, names an embedding: a segment of its own where `find` knows it, else left out, as in
// ComfyUI. An empty `find` knows none. Time: length times the depth of nesting; text nested deeper
// than 256 parentheses keeps them as text. Throws Cancelled.
void weighted_segments(std::string_view prompt, WeightSyntax syntax, Work& work,
                       Sink<const WeightedText&> out, const FindEmbedding& find = {});

// The names behind "embedding:", in order.
void named_embeddings(std::string_view prompt, WeightSyntax syntax, Work& work,
                      Sink<std::string_view> out);

}  // namespace heddle::text
