#include "engine/graph/surely_run.h"

#include <variant>

namespace heddle::engine {

std::vector<bool> surely_run(const Graph& graph, std::span<const Source> wanted) {
  std::vector<bool> runs(graph.nodes.size());
  std::vector<NodeIndex> open;
  const auto reach = [&](NodeIndex n) {
    if (!runs[n]) open.push_back(n);
    runs[n] = true;
  };
  const auto reach_through = [&](const Binding& binding) {
    if (const auto* link = std::get_if<Source>(&binding)) reach(link->node);
  };
  for (const NodeIndex sink : graph.sinks) reach(sink);
  for (const Source& source : wanted) reach(source.node);
  while (!open.empty()) {
    const Node& node = graph.nodes[open.back()];
    open.pop_back();
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i)
      if ((node.type->input(i).flags & HEDDLE_PORT_LAZY) == 0) reach_through(node.inputs[i]);
    for (const auto& [name, binding] : node.extra) reach_through(binding);
  }
  return runs;
}

}  // namespace heddle::engine
