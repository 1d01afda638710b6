// Nodes that a run makes whatever happens on the way.
#pragma once

#include <span>
#include <vector>

#include "engine/graph/graph.h"

namespace heddle::engine {

// By index: those that sinks and `wanted` need without a lazy input between. Others run if a node
// asks for them.
std::vector<bool> surely_run(const Graph& graph, std::span<const Source> wanted);

}  // namespace heddle::engine
