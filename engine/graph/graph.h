// A typed graph of nodes: what bind() makes of a workflow, and what a model family builds of a
// checkpoint. The same class for both floors: a model's graph has inputs, outputs and weights
// besides. Immutable once built; then any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/graph/node_type.h"
#include "engine/tensor/value.h"

namespace heddle::engine {

using NodeIndex = std::uint32_t;
inline constexpr NodeIndex kGraphInputs = std::numeric_limits<NodeIndex>::max();

// One output of one node; or, with node == kGraphInputs, input number `port` of the graph itself.
struct Source {
  NodeIndex node = kGraphInputs;
  std::uint32_t port = 0;
  friend auto operator<=>(const Source&, const Source&) = default;
};

// What an input reads: nothing, a literal, or a link.
using Binding = std::variant<std::monostate, Value, Source>;

// Rows [begin, end) along axis 0 of a checkpoint tensor.
struct WeightPart {
  std::string tensor;
  std::int64_t begin = 0;
  std::int64_t end = -1;   // -1: all rows
  std::int64_t frame = 0;  // from 1, of filters over frames (heddle_part); 0: the tensor as it is
};

// How devices may divide a weight: along an axis, in whole units of each segment. axis < 0: not at
// all.
struct WeightShard {
  std::int32_t axis = -1;
  struct Segment {
    std::int64_t length = 0, unit = 1;
  };
  std::vector<Segment> segments;
};

// Where things shall be; strings as the user wrote them, empty where nothing was said.
struct BlockHint {
  std::string match;  // "double.*"
  std::string device;
};
struct Hints {
  std::string device;  // "cuda:1", "cuda", "cuda:0,cuda:1"
  std::string prefer;
  std::string parallel;  // as kParallelModes has it: "layers", "cfg+sequence"
  std::vector<BlockHint> blocks;
  std::string device_from = {},
              parallel_from = {};  // who gave them beside the workflow, for messages
};

// Where a node comes from that came while a run was under way.
struct NodeOrigin {
  std::string parent;       // id of the node that asked for it
  std::string display;      // id that people see
  std::string real;         // id of the workflow's node from which all of it comes
  std::uint32_t level = 1;  // of expansions within each other
};

struct Node {
  std::string id;     // "3"; in a model's graph the path "double.7"
  std::string title;  // _meta.title, or empty
  NodeTypeRef type;
  // Called once for each element of the lists that it reads, so that all its outputs are lists.
  bool is_mapped = false;       // here, because it is read whenever the inputs are
  std::vector<Binding> inputs;  // one for each declared port
  std::vector<std::pair<std::string, Binding>> extra;  // undeclared inputs, in the workflow's order
  std::vector<std::vector<WeightPart>> weights;        // one for each slot; empty: not given
  std::vector<WeightShard> shards;  // one for each slot, or empty: none may be divided
  Hints hints;
  std::shared_ptr<const NodeOrigin> origin;  // nullptr: it stands in the workflow
};

// "node 'decode' (ImageScale)", for messages.
std::string name_of(const Node& node);

struct GraphInput {
  std::string name;
  std::uint32_t flags = 0;  // HEDDLE_INPUT_...
};
struct GraphOutput {
  std::string name;
  Source from;
};

struct Graph {
  std::vector<Node> nodes;
  std::vector<GraphInput> inputs;    // of a model
  std::vector<GraphOutput> outputs;  // of a model
  std::vector<NodeIndex>
      order;  // a topological order: smallest index first among the ready; of needed nodes only
  std::vector<NodeIndex> sinks;  // of a workflow: nodes that run though nobody reads them
  bool may_grow = false;         // a node of its order may ask for new ones while it runs

  // "node 'decode' (ImageScale)", for messages.
  std::string name_of(NodeIndex node) const;
};

// Calls visit(binding) for every input of the node, the undeclared ones included.
template <class F>
void for_each_binding(const Node& node, F&& visit) {
  for (const Binding& b : node.inputs) visit(b);
  for (const auto& [name, b] : node.extra) visit(b);
}

}  // namespace heddle::engine
