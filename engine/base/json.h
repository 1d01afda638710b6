// Reading and writing JSON text. The reader takes what Python's json module writes (NaN and
// Infinity included) and refuses everything else with "name:line:column: what". RapidJSON does the
// work and is seen in json.cpp only. Pure functions; any thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "engine/base/json_value.h"

namespace heddle::engine {

// Arrays and objects may be nested this deep in a text; deeper ones are refused. Values built in
// code should stay below it, too: copying, writing and destroying recurse once per level.
inline constexpr std::size_t kMaxJsonDepth = 512;

// Reads one JSON text in UTF-8 (a byte order mark is skipped). Throws Error(invalid_argument)
// "name:line:column: what" for a syntax error, text behind the value, invalid UTF-8, an unpaired
// surrogate, a number too large for a double, or nesting below kMaxJsonDepth. Needs no stack in
// proportion to the nesting.
Json parse_json(std::string_view text, std::string_view name_for_errors);

// Takes pieces of a text while the rest is still read, so that a large one never stands in memory
// as a whole: a tree that does not fit into the processor's caches costs far more than one that
// does. Asked about objects that are members of the text's object (`around` is empty), and about
// those inside of these (`around`: the key of the outer one), as soon as they are complete. True:
// it was taken, and null stays in its place.
using JsonTaker = std::function<bool(std::string_view around, const Json::Member& member)>;
Json parse_json(std::string_view text, std::string_view name_for_errors, const JsonTaker& take);

// Members in their order; whole numbers exact, reals by the fewest digits that read back as the
// same number and always with a point or an exponent (5.0 stays 5.0), NaN and Infinity as Python
// writes them; bytes that are not UTF-8 as U+FFFD. `indent` 0 gives one line without spaces, else
// that many spaces a level.
std::string write_json(const Json& json, int indent = 0);

}  // namespace heddle::engine
