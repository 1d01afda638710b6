// plugins/encoders/text_writer.h - a language model that writes (language_model.h, "writes_texts")
// in a loop: the prompt at once, then token by token, with keys and values of all before, and with
// what layers of linear attention remember of them. Keys and values lie in buffers with room for a
// power of two of tokens, so that one session serves until they are full. One call's thread.
#pragma once

#include <vector>

#include "prompt_tokens.h"
#include "token_sampling.h"

namespace heddle::encoders {

struct Writing {
  const TextEncoder& encoder;  // its model writes
  const Prompt& prompt;        // with its pictures
  std::int64_t most = 0;       // tokens
  std::optional<SamplingRules> rules;
  std::vector<std::int32_t> ends = {};  // tokens that a text ends before
};

// The tokens that the model writes. May be stopped between two of them, and goes on where it was.
// Throws HEDDLE_CANCELLED when the call is cancelled.
std::vector<std::int32_t> written_tokens(Context& ctx, const Writing& writing);

// The calls of models for it, with as many tokens as it may have.
void infer_writing(Infer& question, const Writing& writing);

}  // namespace heddle::encoders
