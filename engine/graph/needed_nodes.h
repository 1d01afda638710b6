// The part of a graph that some of its nodes need. Pure; any thread; linear, but for sorting.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "engine/graph/dag.h"
#include "engine/graph/graph.h"

namespace heddle::engine {

// The graph of what these sinks need, numbered anew. `dag`, `order`: of all nodes, the order
// topological. Where a needed node grows (asks for others while it runs), all nodes stay, as it may
// ask for any; then those that nobody needs are not in the graph's order.
Graph keep_needed(std::vector<Node> nodes, const Dag& dag, const std::vector<NodeIndex>& sinks,
                  std::vector<NodeIndex> order, const std::function<bool(NodeIndex)>& grows);

// From where each link comes, to who reads it.
std::vector<std::pair<std::uint32_t, std::uint32_t>> links_of(const Graph& graph);

}  // namespace heddle::engine
