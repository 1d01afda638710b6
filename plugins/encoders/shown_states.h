// A picture that a language model without a vision tower is shown: states that another tower made
// of it stand in the place of a mark in the prompt. Of the result the states of the picture come
// first, each of so many, then those of the user's turn; as ComfyUI has it for HunyuanVideo 1.0.
// One call's thread.
#pragma once

#include <vector>

#include <heddle/model.hpp>

#include "windows.h"

namespace heddle::encoders {

class TextEncoder;

// What a prompt shows so; before a run the shape alone is known.
struct ShownStates {
  Shape shape;            // (1, K, width)
  Tensor states = {};     // f32
  std::int64_t each = 1;  // of so many states of the picture the first is in the result
  // Marks of the template: before the user's turn, behind it what begins the text, and at its end.
  const char *turn = "", *gap = "", *end = "";

  bool is_there() const { return !shape.empty(); }
};

// Where a picture's states stand among the tokens of a prompt.
inline constexpr const char* kPictureMark = "<image>";

// The only window of a prompt in its template, in which `kPictureMark` is at the picture's place.
// Throws where the tokenizer does not find the marks.
Windows windows_with_states(const TextEncoder& encoder, const std::string& prompt,
                            const ShownStates& shown);

// What the language model reads besides. Throws where the states have another width than it.
void show_states(Context& ctx, const TextEncoder& encoder, const ShownStates& shown,
                 const Windows& windows, Record& inputs);
std::vector<Infer::Named> state_shapes(const TextEncoder& encoder, const Windows& windows);

}  // namespace heddle::encoders
