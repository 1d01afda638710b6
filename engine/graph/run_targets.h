// The output nodes that a workflow is run for: all of them, or those that it names under
// "partial_execution_targets", ComfyUI's key beside "prompt". The key stays among those that the
// workflow keeps, so that a copy of its text says the same. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/graph/workflow.h"

namespace heddle::engine {

// Names them, by ids; none: all. bind() tells of one that saves and shows nothing.
void set_targets(Workflow& workflow, const std::vector<std::string>& ids);

// Of the sinks those that the workflow names, in order, each once; all where it has no such key.
// An id of no sink is told in `problems`, with those that there are; so is a key that is no list of
// ids. An empty list asks for nothing, which is told, too. Linear, but for sorting.
std::vector<NodeIndex> wanted_sinks(const Workflow& workflow, std::vector<NodeIndex> sinks,
                                    std::vector<std::string>& problems);

}  // namespace heddle::engine
