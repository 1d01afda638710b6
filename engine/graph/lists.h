// Lists, as ComfyUI has them: an output of a port with HEDDLE_PORT_LIST is a list of values. A node
// that reads one is called once for each element, and its outputs are lists of what the calls have
// made; of a shorter list the last element stands for those that it lacks. A node with an input of
// such a port is called once instead, with whole lists.
//
// Which outputs are lists is known before a run. A list is a value of HEDDLE_KIND_LIST.
#pragma once

#include "engine/graph/graph.h"

namespace heddle::engine {

// Of a graph whose nodes have been marked.
bool is_list(const Graph& graph, const Source& source);

// Whether inference can tell nothing of a node: what it reads or makes are lists.
bool has_lists(const Node& node);

// Marks the nodes that are called for each element. `order` has to be topological.
void mark_mapped(Graph& graph);

}  // namespace heddle::engine
