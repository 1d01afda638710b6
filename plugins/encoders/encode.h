// Texts through the encoders of a CLIP value (field/values.h): tokens, windows, prompt weights, and
// the conditioning that the value's type makes of the outputs. One call's thread.
#pragma once

#include <map>
#include <string>

#include <heddle/model.hpp>

namespace heddle::encoders {

// One text for all encoders, or one for each by its name ("clip_l", "t5xxl").
struct Prompt {
  std::string text;
  std::map<std::string, std::string> by_encoder;

  const std::string& of(const std::string& encoder) const {
    const auto found = by_encoder.find(encoder);
    return found == by_encoder.end() ? text : found->second;
  }
};

// A CONDITIONING of one entry. Throws when the CLIP value cannot encode, saying what is missing.
Value encode_prompt(Context& ctx, const Value& clip, const Prompt& prompt);

}  // namespace heddle::encoders
