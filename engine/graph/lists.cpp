#include "engine/graph/lists.h"

namespace heddle::engine {

bool is_list(const Graph& graph, const Source& source) {
  if (source.node == kGraphInputs) return false;
  const Node& node = graph.nodes[source.node];
  if (node.type == nullptr) return false;
  return node.is_mapped || (node.type->output(source.port).flags & HEDDLE_PORT_LIST) != 0;
}

bool has_lists(const Node& node) {
  return node.is_mapped || node.type->takes_lists() || node.type->makes_lists();
}

void mark_mapped(Graph& graph) {
  for (const NodeIndex n : graph.order) {
    Node& node = graph.nodes[n];
    node.is_mapped = false;
    if (node.type == nullptr || node.type->takes_lists()) continue;  // of an unknown class: no run
    bool reads_list = false;
    for_each_binding(node, [&](const Binding& binding) {
      if (const auto* link = std::get_if<Source>(&binding))
        reads_list = reads_list || is_list(graph, *link);
    });
    node.is_mapped = reads_list;
  }
}

}  // namespace heddle::engine
