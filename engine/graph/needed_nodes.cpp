#include "engine/graph/needed_nodes.h"

#include <algorithm>

namespace heddle::engine {

namespace {

Graph renumber(std::vector<Node> nodes, const Dag& dag, const std::vector<NodeIndex>& sinks,
               const std::vector<bool>& needed) {
  std::vector<NodeIndex> position(nodes.size(), kGraphInputs);
  Graph graph;
  for (NodeIndex i = 0; i < nodes.size(); ++i) {
    if (!needed[i]) continue;
    position[i] = static_cast<NodeIndex>(graph.nodes.size());
    graph.nodes.push_back(std::move(nodes[i]));
  }
  const auto move_source = [&](Binding& binding) {
    if (Source* source = std::get_if<Source>(&binding)) source->node = position[source->node];
  };
  for (Node& node : graph.nodes) {
    for (Binding& binding : node.inputs) move_source(binding);
    for (auto& [name, binding] : node.extra) move_source(binding);
  }
  Dag kept{static_cast<std::uint32_t>(graph.nodes.size()), {}};
  for (const auto& [from, to] : dag.edges)
    if (needed[to]) kept.edges.emplace_back(position[from], position[to]);
  graph.order = topological_order(kept);
  for (const NodeIndex sink : sinks) graph.sinks.push_back(position[sink]);
  return graph;
}

}  // namespace

Graph keep_needed(std::vector<Node> nodes, const Dag& dag, const std::vector<NodeIndex>& sinks,
                  std::vector<NodeIndex> order, const std::function<bool(NodeIndex)>& grows) {
  const std::vector<bool> needed = ancestors(dag, sinks);
  const auto is_needed = [&](NodeIndex i) { return needed[i]; };
  const bool may_grow =
      std::ranges::any_of(order, [&](NodeIndex i) { return needed[i] && grows(i); });
  const bool all_needed = std::ranges::find(needed, false) == needed.end();
  if (!all_needed && !may_grow) return renumber(std::move(nodes), dag, sinks, needed);
  if (!all_needed) std::erase_if(order, std::not_fn(is_needed));
  Graph graph;
  graph.nodes = std::move(nodes);
  graph.order = std::move(order);
  graph.sinks = sinks;
  graph.may_grow = may_grow;
  return graph;
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> links_of(const Graph& graph) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> links;
  for (NodeIndex n = 0; n < graph.nodes.size(); ++n)
    for_each_binding(graph.nodes[n], [&](const Binding& binding) {
      if (const auto* link = std::get_if<Source>(&binding)) links.emplace_back(link->node, n);
    });
  return links;
}

}  // namespace heddle::engine
