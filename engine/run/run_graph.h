// The nodes of a run, each with its place and what it has made: those of the plan, and those that
// came while the run was under way (expansion.h). A node is known by its index in both; those that
// came stand behind the plan's.
//
// Any thread may look at a node that it has learned of through the run's lock; nodes are added by
// one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/growing_vector.h"
#include "engine/base/hash.h"
#include "engine/graph/graph.h"
#include "engine/graph/lists.h"
#include "engine/place/plan.h"

namespace heddle::engine {

// A node that came while the run was under way, planned.
struct AddedNode {
  Node node;
  Assignment place;
  std::uint64_t host_bytes = 0, device_bytes = 0;  // as in Plan
  std::vector<std::uint32_t> homes;                // by output, as in Plan
  Hash128 key;                                     // of its outputs; Hash128(): they are not cached
};

class RunGraph {
 public:
  // Both have to outlive it.
  RunGraph(const Graph& graph, const Plan& plan);

  const Graph& planned() const { return graph_; }
  Fidelity fidelity() const { return plan_.fidelity; }  // of new nodes, too
  bool borrows_memory() const {                         // the same
    return plan_.assignments.empty() || plan_.assignments.front().borrows_memory;
  }
  // Those of the plan come first.
  NodeIndex planned_count() const { return planned_count_; }
  NodeIndex size() const { return static_cast<NodeIndex>(planned_count_ + added_.size()); }

  const Node& node(NodeIndex n) const {
    return n < planned_count_ ? graph_.nodes[n] : added(n).node;
  }
  const Assignment& place(NodeIndex n) const {
    return n < planned_count_ ? plan_.assignments[n] : added(n).place;
  }
  std::uint64_t host_bytes(NodeIndex n) const {
    if (n >= planned_count_) return added(n).host_bytes;
    return n < plan_.host_bytes.size() ? plan_.host_bytes[n] : 0;
  }
  std::uint64_t device_bytes(NodeIndex n) const {
    if (n >= planned_count_) return added(n).device_bytes;
    return n < plan_.device_bytes.size() ? plan_.device_bytes[n] : 0;
  }
  const AddedNode& added(NodeIndex n) const { return added_[n - planned_count_]; }
  const std::vector<NodeIndex>& order() const { return order_; }  // of the plan

  // Written by whoever finishes the node, before its readers become ready.
  Value& output(const Source& source) { return outputs_[output_index(source)]; }
  // All outputs of the run, one node after another: those that come are behind those of the plan.
  std::size_t output_index(const Source& source) const {
    return first_output_[source.node] + source.port;
  }
  std::size_t output_count() const { return outputs_.size(); }
  // Whether a node of the plan shows something on the way to the sinks.
  bool shows_on_the_way() const { return shows_on_the_way_; }
  // As engine::is_list(), of any node of the run.
  bool is_list(const Source& source) const {
    const Node& from = node(source.node);
    return from.is_mapped || (from.type->output(source.port).flags & HEDDLE_PORT_LIST) != 0;
  }

  NodeIndex add(AddedNode node);

 private:
  const Graph& graph_;
  const Plan& plan_;
  const NodeIndex planned_count_;
  const std::vector<NodeIndex>& order_;
  GrowingVector<AddedNode> added_;
  GrowingVector<std::size_t> first_output_;  // by node
  GrowingVector<Value> outputs_;
  const bool shows_on_the_way_;
};

}  // namespace heddle::engine
