// plugins/encoders/detection_texts.h - texts for models that find what a text names (a CLIP value
// of type "sam3"): several things apart by commas, each with how many of it at most ("cat:2"), as
// ComfyUI reads them. Any thread; a Context belongs to one call.
#pragma once

#include <string>
#include <vector>

#include "prompt_tokens.h"

namespace heddle::encoders {

struct NamedThing {
  std::string text;
  std::int64_t most = 1;
};
// A text of one thing is itself, whatever stands in it; of others brackets are left out. Throws
// where a number of things is none.
std::vector<NamedThing> named_things(const std::string& text);

bool finds_things(const Value& clip);

// The rows [begin, end) of the states of a prompt's windows, one after another, that are of its
// tokens, not of padding.
std::vector<std::pair<std::int64_t, std::int64_t>> token_rows(const TextEncoder& encoder,
                                                              const Prompt& prompt,
                                                              const Context* ctx);

}  // namespace heddle::encoders
