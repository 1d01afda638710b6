// Group nodes, which ComfyUI had before subgraphs: nodes of the type "workflow>NAME", whose inside
// stands in extra.groupNodes. Each is turned into an instance of a subgraph of its own, with ids as
// they always had: "12:0", "12:1". Pure; any thread.
#pragma once

#include "engine/graph/node_definitions.h"
#include "engine/graph/saved_graph.h"

namespace heddle::engine {

// The names of a group node's sockets and the order of its widget values come from the classes of
// the nodes inside, so `definitions` has to know them.
void add_group_definitions(const Json& json, const NodeDefinitions& definitions,
                           SavedWorkflow& workflow, std::vector<SavedProblem>& problems);

}  // namespace heddle::engine
