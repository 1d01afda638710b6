// Cache keys: for each node a hash of how its outputs come about (class, version, literals, keys of
// what it reads, outside state, the class of device it computes on). Linear in the graph,
// independent of node names.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "engine/base/hash.h"
#include "engine/graph/graph.h"
#include "engine/place/plan.h"

namespace heddle::engine {

// The key of a node's outputs where it is known, or of what they are made of where that is not what
// its inputs tell; Hash128(): nothing is.
struct KnownKey {
  Hash128 key;
  bool is_of_outputs = false;
};
using KnownKeys = std::function<KnownKey(NodeIndex)>;

// By node; Hash128() for one that is never cached (impure, or below an impure one).
// `device_classes`: by device, what it is to a result: kind, model and compute type.
// `fingerprint(node)`: its outside state, asked for nodes that have any.
std::vector<Hash128> output_keys(const Graph& graph, std::span<const Assignment> assignments,
                                 std::span<const Hash128> device_classes,
                                 const std::function<std::uint64_t(NodeIndex)>& fingerprint,
                                 const KnownKeys& known_keys = {});

// The same of one node, from the keys of those that it reads.
Hash128 node_key(const Node& node, const Assignment& place, std::span<const Hash128> device_classes,
                 const std::function<Hash128(NodeIndex)>& key_of,
                 const std::function<std::uint64_t()>& fingerprint);

}  // namespace heddle::engine
