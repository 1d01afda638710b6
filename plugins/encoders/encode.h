// Texts through the encoders of a CLIP value (heddle/diffusion/values.h): tokens, windows, prompt
// weights, and the conditioning that the value's type makes of the outputs. One call's thread.
#pragma once

#include <optional>

#include "prompt_tokens.h"

namespace heddle::encoders {

// A CONDITIONING of one entry, or of one for each part of the way where the CLIP's hooks are
// scheduled. Throws when the CLIP value cannot encode, saying what is missing.
Value encode_prompt(Context& ctx, const Value& clip, const Prompt& prompt);

// The same by shapes: the calls of the encoders and the tensors of the entries. Tells nothing where
// encode_prompt() would throw, which is then the run's to say; but that pictures are to be seen by
// what sees none it throws. Gives the number of entries that it told of.
std::size_t infer_prompt(Infer& question, const Value& clip, const Prompt& prompt,
                         const Output<Value>& conditioning);

// The pooled vector of encode_prompt()'s first entry by shapes, and the calls of all; none where
// there is none, or encode_prompt() would throw.
std::optional<Shape> infer_pooled(Infer& question, const Value& clip, const Prompt& prompt);
// Likewise the states.
std::optional<Shape> infer_states(Infer& question, const Value& clip, const Prompt& prompt);

}  // namespace heddle::encoders
