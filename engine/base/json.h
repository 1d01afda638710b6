// Reading and writing JSON text. The reader takes what Python's json module writes (NaN and
// Infinity included) and refuses everything else with "name:line:column: what". RapidJSON does the
// work and is seen in json.cpp only. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/json_value.h"

namespace heddle::core {

// Arrays and objects may be nested this deep in a text; deeper ones are refused. Values built in
// code should stay below it, too: copying, writing and destroying recurse once per level.
inline constexpr std::size_t kMaxJsonDepth = 512;

// Reads one JSON text in UTF-8 (a byte order mark is skipped). Throws Error(invalid_argument)
// "name:line:column: what" for a syntax error, text behind the value, invalid UTF-8, an unpaired
// surrogate, a number too large for a double, or nesting below kMaxJsonDepth. Needs no stack in
// proportion to the nesting.
Json parse_json(std::string_view text, std::string_view name_for_errors);

// Members in their order; whole numbers exact, reals by the fewest digits that read back as the
// same number and always with a point or an exponent (5.0 stays 5.0), NaN and Infinity as Python
// writes them; bytes that are not UTF-8 as U+FFFD. `indent` 0 gives one line without spaces, else
// that many spaces a level.
std::string write_json(const Json& json, int indent = 0);

}  // namespace heddle::core
