// What is known of a workflow's values before it runs: shapes of tensors, literals passed on. Asks the nodes' own infer();
// what they cannot say is "pending". Pure as far as nodes are.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/graph/graph.h"

namespace heddle::core {

struct ValueSpec {
  Value value;                                                      // known before running, or empty
  std::map<std::string, heddle_tensor_info, std::less<>> tensors;  // by path in the record; "" is the value itself
};

struct NodeSpec {
  std::vector<ValueSpec> outputs;
  double flops = 0, bytes = 0;
  std::uint64_t scratch_bytes = 0;
};

struct PendingOutput {
  NodeIndex node = 0;
  std::string output;
};

struct Inferred {
  std::vector<NodeSpec> nodes;         // by index
  std::vector<PendingOutput> pending;  // outputs of needed nodes that nothing is known of
};

Inferred infer(const Graph& graph, const heddle_host* host);

}  // namespace heddle::core

// One question to one node.
struct heddle_infer {
  const heddle::core::Graph& graph;
  const heddle::core::Node& node;
  const std::vector<heddle::core::NodeSpec>& known;
  heddle::core::NodeSpec answer;
};
