// A graph as text, a line for each node in order: what golden tests compare. Stable.
#pragma once

#include <string>

#include "engine/graph/graph.h"

namespace heddle::core {

std::string graph_text(const Graph& graph);

}  // namespace heddle::core
