// A model's graph with some of its blocks left out: what reads their outputs reads what their
// inputs of the same names get. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "engine/graph/graph.h"

namespace heddle::engine {

// A path is that of a block, or of a group of them ("double.7"): all whose paths begin with it and
// a dot. One that nothing has leaves nothing out. Throws invalid_argument where an output that is
// read outside has no input of its name: such a block makes something that others cannot do
// without.
Graph without_blocks(const Graph& graph, const std::vector<std::string>& paths);

}  // namespace heddle::engine
