// Cache keys: for each node a hash of how its outputs come about (class, version, literals, keys of what it reads, outside state,
// the form it computes in). Linear in the graph, independent of node names.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/hash.h"
#include "engine/graph/graph.h"

namespace heddle::core {

// `form(node)`: device kind, model and compute type for a node that computes, "" for a host-only one. `fingerprint(node)`: its outside
// state, asked for nodes that have any. No key: the node is never cached (impure, or below an impure one).
std::vector<std::optional<Hash128>> output_keys(const Graph& graph, const std::function<std::string(NodeIndex)>& form,
                                                const std::function<std::uint64_t(NodeIndex)>& fingerprint);

}  // namespace heddle::core
