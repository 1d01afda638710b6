// The part of a graph that some of its nodes need. Pure; any thread; linear, but for sorting.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/dag.h"
#include "engine/graph/graph.h"
#include "engine/graph/workflow.h"

namespace heddle::engine {

// The graph of what these sinks need, numbered anew. `dag`, `order`: of all nodes, the order
// topological. Where a needed node grows (asks for others while it runs), all nodes stay, as it may
// ask for any; then those that nobody needs are not in the graph's order.
Graph keep_needed(std::vector<Node> nodes, const Dag& dag, const std::vector<NodeIndex>& sinks,
                  std::vector<NodeIndex> order, const std::function<bool(NodeIndex)>& grows);

// From where each link comes, to who reads it.
std::vector<std::pair<std::uint32_t, std::uint32_t>> links_of(const Graph& graph);

// Of the sinks those with these ids, in order, each once; of none: all. An id of no sink is told in
// `problems`, with those that there are.
std::vector<NodeIndex> wanted_sinks(const Workflow& workflow, std::vector<NodeIndex> sinks,
                                    const std::vector<std::string>& ids,
                                    std::vector<std::string>& problems);

}  // namespace heddle::engine
