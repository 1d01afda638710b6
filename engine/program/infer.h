// What is known of a workflow's values before it runs: shapes of tensors, literals passed on. Asks
// the nodes' own infer(); what they cannot say is "pending". Pure as far as nodes are.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/graph.h"

namespace heddle::engine {

// A call of a model, by shapes: what execute() of a node is going to open and step.
struct CallSpec {
  using Infos = std::map<std::string, heddle_tensor_info, std::less<>>;  // by input name
  struct Set {
    Infos constants, steps;
  };
  Value model;
  std::vector<Set> sets;
  Infos schedule;  // (steps, ...)
  std::uint32_t step_count = 1;
};

struct ValueSpec {
  Value value;  // known before running, or empty
  std::map<std::string, heddle_tensor_info, std::less<>>
      tensors;             // by path: keys and indices, "0.text"; "" is the value itself
  bool is_shared = false;  // its tensors are those of inputs, or parts of them
  std::map<std::string, Value, std::less<>>
      parts;  // known parts of a value that is not known, by path
};

// A part of a value by its path; empty when it is not there.
Value part_of(const Value& value, std::string_view path);
// What is known of a part; empty when nothing is.
Value part_of(const ValueSpec& spec, std::string_view path);

struct NodeSpec {
  std::vector<ValueSpec> outputs;
  double flops = 0, bytes = 0;           // besides the calls
  std::uint64_t scratch_bytes = 0;       // where the node is placed
  std::uint64_t host_scratch_bytes = 0;  // in host memory, wherever it is placed
  std::vector<CallSpec> calls;           // in the order execute() makes them
  std::vector<CallSpec> least_calls;     // made instead, where there is no room for those
  // With least_calls, instead of scratch_bytes; empty: as much.
  std::optional<std::uint64_t> least_scratch_bytes;
};

// What execute() takes at most, as far as it tells, without the models that it calls: the tensors
// that it makes, and what it works on besides.
struct NodeBytes {
  std::uint64_t made = 0, scratch = 0;
  std::uint64_t all() const { return made + scratch; }
};
// Where the node is placed.
NodeBytes bytes_of(const NodeSpec& node);
// In host memory.
NodeBytes host_bytes_of(const NodeSpec& node, bool is_placed_on_host);

// Values that are known before the run: what nodes that read headers only have given.
using Facts = std::map<Source, Value>;

// What is known of the value that an input is linked to; nullptr: there is no link.
const ValueSpec* linked_spec(const Node& node, std::uint32_t input,
                             const std::vector<NodeSpec>& known);

struct PendingOutput {
  NodeIndex node = 0;
  std::string output;
};

struct Inferred {
  std::vector<NodeSpec> nodes;         // by index
  std::vector<PendingOutput> pending;  // outputs of needed nodes that nothing is known of
};

// Throws RefusedValue, with the node, for a known value that an input does not take, as the run
// would, and what nodes throw. `catalog` knows the choices that plugins bring; nullptr: those are
// left to the run. A lazy input may never be asked for: there such a value counts as unknown.
Inferred infer(const Graph& graph, const heddle_host* host, const Facts& facts = {},
               const Catalog* catalog = nullptr);

}  // namespace heddle::engine

// One question to one node.
struct heddle_infer {
  const heddle::engine::Graph& graph;
  const heddle::engine::Node& node;
  const std::vector<heddle::engine::NodeSpec>& known;
  heddle::engine::NodeSpec answer;
  const heddle::engine::Catalog* catalog = nullptr;
  std::vector<heddle::engine::Value> lent = {};  // what was made to answer
};
