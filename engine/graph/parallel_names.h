// The names of parallel modes, single ones and such as go together ("cfg+sequence"). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace heddle::engine {

// As kParallelModes (workflow_keys.h) has it, whatever the order of its parts; nothing for what is
// no mode.
std::optional<std::string> canonical_parallel(std::string_view name);

// "Did you mean ... There are: ...", of a name that is none.
std::string parallel_advice(std::string_view name);

}  // namespace heddle::engine
