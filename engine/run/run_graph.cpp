#include "engine/run/run_graph.h"

#include <algorithm>

#include "heddle/abi/front_end.h"

namespace heddle::engine {

namespace {

// Where each node's outputs begin; gives how many there are.
std::size_t number_outputs(const Graph& graph, GrowingVector<std::size_t>& first_output) {
  std::size_t count = 0;
  for (NodeIndex n = 0; n < graph.nodes.size(); ++n) {
    first_output[n] = count;
    count += graph.nodes[n].type->output_count();
  }
  return count;
}

}  // namespace

RunGraph::RunGraph(const Graph& graph, const Plan& plan)
    : graph_(graph),
      plan_(plan),
      planned_count_(static_cast<NodeIndex>(graph.nodes.size())),
      order_(plan.order.empty() ? graph.order : plan.order),
      first_output_(graph.nodes.size()),
      outputs_(number_outputs(graph, first_output_)),
      shows_on_the_way_(std::ranges::any_of(graph.nodes, [](const Node& node) {
        return node.type->has(HEDDLE_NODE_INTERMEDIATE_OUTPUT);
      })) {}

NodeIndex RunGraph::add(AddedNode node) {
  const NodeIndex index = size();
  first_output_.add(outputs_.size());
  for (std::uint32_t o = 0; o < node.node.type->output_count(); ++o) outputs_.add();
  added_.add(std::move(node));
  return index;
}

}  // namespace heddle::engine
