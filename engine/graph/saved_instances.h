// The tree of a saved workflow's subgraphs: one entry for the root and for each use of a subgraph
// that is neither muted nor bypassed. Values; any thread.
#pragma once

#include <deque>

#include "engine/graph/saved_links.h"

namespace heddle::engine {

// Faults (a subgraph that contains itself or that is not defined, too many nodes) go to `problems`.
std::deque<SavedInstance> saved_instances(const SavedWorkflow& workflow,
                                          std::vector<SavedProblem>& problems);

// The nodes of a graph in the order in which the interface lists them: those that need nothing
// first, then whoever has all that it needs, then what stands in circles.
std::vector<const SavedNode*> execution_order(const SavedGraph& graph);

}  // namespace heddle::engine
