// What the nodes of a workflow are made of, for whoever goes on with them in another process: as
// the keys of the output cache (keys.h), but files count by their content, and the devices are left
// out, as they are told by themselves.
#pragma once

#include <vector>

#include "engine/base/hash.h"
#include "engine/files/file_hashes.h"
#include "engine/graph/graph.h"

namespace heddle::engine {

struct Environment;

// By node of the graph, before anything is cut off; Hash128() where nobody can say: of what is
// never cached, and of what reads values that were given for one run. Reads every file that a node
// stands on, once. Throws what nodes throw whose files cannot be read.
std::vector<Hash128> made_of(const Graph& graph, Environment& environment, FileHashes& hashes);

}  // namespace heddle::engine
