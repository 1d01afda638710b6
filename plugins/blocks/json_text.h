// JSON text in the shape in which ComfyUI writes it into pictures: Python's json.dumps, one line,
// ", " and ": " between things, ASCII alone. Works on text that is JSON already; numbers keep their
// digits. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

namespace heddle::blocks {

// Of valid JSON in UTF-8; a byte that is no UTF-8 becomes U+FFFD.
std::string python_json(std::string_view json);

// The text as a JSON string, with quotes, in ASCII.
std::string json_string(std::string_view text);

}  // namespace heddle::blocks
