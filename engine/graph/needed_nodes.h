// The part of a graph that some of its nodes need. Pure; any thread; linear, but for sorting.
#pragma once

#include <utility>
#include <vector>

#include "engine/graph/dag.h"
#include "engine/graph/graph.h"

namespace heddle::engine {

// A graph of the needed nodes alone, numbered anew, with its order and sinks. `dag`: of all nodes.
Graph keep_needed(std::vector<Node> nodes, const Dag& dag, const std::vector<NodeIndex>& sinks,
                  const std::vector<bool>& needed);

// From where each link comes, to who reads it.
std::vector<std::pair<std::uint32_t, std::uint32_t>> links_of(const Graph& graph);

}  // namespace heddle::engine
