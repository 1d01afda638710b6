#include "engine/run/run_graph.h"

#include "heddle/abi/front_end.h"

namespace heddle::engine {

namespace {

std::size_t count_outputs(const Graph& graph) {
  std::size_t count = 0;
  for (const Node& node : graph.nodes) count += node.type->output_count();
  return count;
}

}  // namespace

RunGraph::RunGraph(const Graph& graph, const Plan& plan)
    : graph_(graph),
      plan_(plan),
      planned_count_(static_cast<NodeIndex>(graph.nodes.size())),
      order_(plan.order.empty() ? graph.order : plan.order),
      first_output_(graph.nodes.size()),
      outputs_(count_outputs(graph)) {
  std::size_t first = 0;
  for (NodeIndex n = 0; n < planned_count_; ++n) {
    const NodeType& type = *graph.nodes[n].type;
    first_output_[n] = first;
    first += type.output_count();
    shows_on_the_way_ = shows_on_the_way_ || type.has(HEDDLE_NODE_INTERMEDIATE_OUTPUT);
  }
}

NodeIndex RunGraph::add(AddedNode node) {
  const NodeIndex index = size();
  first_output_.add(outputs_.size());
  for (std::uint32_t o = 0; o < node.node.type->output_count(); ++o) outputs_.add();
  added_.add(std::move(node));
  return index;
}

}  // namespace heddle::engine
