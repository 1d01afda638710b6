// JSON as Python's json.dumps writes it, with characters beyond ASCII as they are. Pure; any
// thread.
#pragma once

#include <heddle/node.hpp>
#include <string>

namespace heddle::loaders {

// indent: spaces of a level; 0: all in one line. Throws HEDDLE_INVALID_ARGUMENT for what JSON
// cannot hold (tensors, models).
std::string json_dump(const Value& value, int indent);

}  // namespace heddle::loaders
