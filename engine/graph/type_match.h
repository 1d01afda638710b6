// Which outputs may be linked to which inputs: ComfyUI's rules for type names. Pure; any thread.
#pragma once

#include <string_view>

#include "heddle/abi/node.h"

namespace heddle::engine {

// Equal names; "*" on either side; or a name in common where a side is a list ("INT,FLOAT"). Blanks
// around names do not count.
bool types_match(std::string_view received, std::string_view wanted);

// Whether it chooses from a list of names, of files or of folders.
bool chooses(const heddle_port& input);

// The same for an input: one that chooses from a list takes a COMBO, and no STRING.
bool accepts(const heddle_port& input, std::string_view received);

}  // namespace heddle::engine
