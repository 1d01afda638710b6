// Prompts become windows of token ids with weights, in the lengths that text encoders want: CLIP's
// of 77 with start, end and padding, as many as the prompt needs; T5's one window with a least
// length. Packing is ComfyUI's. Pure, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "prompt_weights.h"
#include "sink.h"
#include "tokenizer.h"
#include "work.h"

namespace heddle::text {

struct WindowToken {
  std::size_t window = 0;  // from 0, in order
  std::int32_t id = 0;
  double weight = 1;  // start, end and padding have 1
};

constexpr std::size_t kNoWindowLimit = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kClipWindow = 77;      // tokens, with start and end
constexpr std::size_t kT5LeastLength = 256;  // tokens, with the end

struct WindowRules {
  std::optional<std::int32_t> start = {}, end = {};  // around every window
  std::int32_t padding = 0;                          // after the end
  std::size_t length = kNoWindowLimit;               // at most, with start and end
  bool pad_to_length = false;                        // short windows are filled up to `length`
  std::size_t least_length = 0;                      // the last window is filled up to this
  std::size_t long_segment =
      8;  // segments of so many tokens are cut where a window is full; shorter ones move on
};

// For a CLIP tokenizer: its prefix and suffix as start and end. `padding` is the end token for
// CLIP-L and 0 for CLIP-G and CLIP-H. Throws TextError when the tokenizer has no prefix or suffix.
WindowRules clip_window_rules(const Tokenizer& tokenizer, std::int32_t padding,
                              std::size_t length = kClipWindow);

// For a T5 tokenizer: no start, its suffix as end, no limit.
WindowRules t5_window_rules(const Tokenizer& tokenizer, std::int32_t padding = 0,
                            std::size_t least_length = kT5LeastLength);

// The windows of a prompt, at least one, token by token; ids of embeddings are those of `find`
// (prompt_weights.h). Throws what Tokenizer::encode() throws,
// and TextError for windows without room for text.
void token_windows(const Tokenizer& tokenizer, std::string_view prompt, const WindowRules& rules,
                   WeightSyntax syntax, Work& work, Sink<const WindowToken&> out,
                   const FindEmbedding& find = {});

}  // namespace heddle::text
