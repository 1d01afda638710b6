// Ids that are there twice: a node of a subgraph may have the id of one of the root or of another
// subgraph, because subgraphs are copied. ComfyUI's interface gives such nodes new ids when it
// loads a file, and so does this, so that a node has the same id here and there. Pure; any thread.
#pragma once

#include "engine/graph/saved_graph.h"

namespace heddle::engine {

// Root nodes keep theirs; then subgraphs in the order of the file: the number above the greatest
// so far, beginning with last_node_id. Links and promoted widgets follow.
void make_ids_unique(const Json& json, SavedWorkflow& workflow);

}  // namespace heddle::engine
