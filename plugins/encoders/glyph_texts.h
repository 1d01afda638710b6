// What byT5 reads of a prompt for HunyuanVideo 1.5: the texts that are to be written in the video,
// which stand in quotation marks. Source: the publisher's pipeline in diffusers. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace heddle::encoders {

// A sentence 'Text "...". ' for each text between straight or English marks that end in their line,
// each text once, in order. Empty where there is none.
std::string glyph_text(std::string_view prompt);

}  // namespace heddle::encoders
