// A graph as text, a line for each node in order: what golden tests compare. Stable.
#pragma once

#include <string>

#include "engine/graph/graph.h"

namespace heddle::engine {

// "2 3 ImageScale width=64 image=4.IMAGE +note="x" | device=cuda:0": place in the graph, id, class,
// inputs (a literal as JSON, clipped; a link as node.OUTPUT, "@name" for an input of the graph; "+"
// before an undeclared one; absent ones are left out), weight slots, hints. A model's inputs stand
// above and its outputs below the nodes.
std::string graph_text(const Graph& graph);

}  // namespace heddle::engine
