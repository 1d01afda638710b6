// A JSON document parsed by the engine (heddle.json/0) behind the tokenizer library's JsonView.
// Immutable; any thread.
#pragma once

#include <string>
#include <string_view>

#include <heddle/value.hpp>

#include "tokenizer/json_view.h"

namespace heddle::encoders {

// Parses text; `name` is how the user knows it. Throws with name:line:column.
Value parse_json(std::string_view text, const std::string& name);

// The document must outlive the view.
text::JsonView view_json(const Value& document);

}  // namespace heddle::encoders
