// How long the texts may be that models read (HEDDLE_PORT_PROMPT): what they make of one grows with
// it. The same rule for what a workflow says, for what is known while planning, and at the door of
// a call. Pure; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "engine/graph/graph.h"

namespace heddle::engine {

inline constexpr std::uint64_t kNoPromptLimit = std::numeric_limits<std::uint64_t>::max();

// What is wrong with a value for an input of this port and what to do: a sentence or two that
// follow "node 'x', input 'y': ". `limit`: bytes.
std::optional<std::string> prompt_fault(const heddle_port& port, const heddle_value& value,
                                        std::uint64_t limit);

// Of a graph's linked inputs whose values are known before a run. `known` gives nullptr for one
// that is not. Throws Error(invalid_argument) with every fault, a line each.
void check_known_prompts(const Graph& graph,
                         const std::function<const heddle_value*(const Source&)>& known,
                         std::uint64_t limit);

}  // namespace heddle::engine
