// What a language model is given when it sees pictures: what its vision tower makes of them, in the
// rows of the tokens that stand for them, and where each token stands. One call's thread.
#pragma once

#include <vector>

#include "prompt_tokens.h"

namespace heddle::encoders {

// Calls the vision tower for each picture of `windows`, and adds "pictures", "is_text",
// "positions" and, of a tower with several depths, "deep", of a model that reads it "groups" to the
// language model's inputs.
void show_pictures(Context& ctx, const TextEncoder& encoder, const Prompt& prompt,
                   const Windows& windows, Record& inputs);

// The same by shapes: of the vision tower's calls, and of the language model's inputs.
std::vector<Infer::Named> vision_shapes(const TextEncoder& encoder, const Prompt& prompt,
                                        const Windows& windows);
std::vector<Infer::Named> picture_shapes(const TextEncoder& encoder, const Windows& windows);

// An entry's image_slots (heddle/diffusion/values.h); empty where it has none.
Value slots_of(const Windows& windows);

// An entry's image_spans; empty where it has none.
Value spans_of(const Windows& windows);

// Time, row and column of each token. Of a text all three count on; a picture's rows and columns
// count from where it begins, and what follows goes on behind the longer of its sides.
std::vector<float> token_positions(std::int64_t length, const std::vector<PictureTokens>& pictures);

// The same as the encoder's model has them: some count a picture's tokens as they count a text's.
std::vector<float> token_positions(const TextEncoder& encoder, const Windows& windows);

}  // namespace heddle::encoders
