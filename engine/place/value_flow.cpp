#include "engine/place/value_flow.h"

namespace heddle::core {

const Source* passed_on(const Node& node, std::uint32_t output) {
  for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
    const heddle_port& port = node.type->input(i);
    if ((port.flags & HEDDLE_PORT_PASS) == 0 || std::string_view(port.type) != node.type->output(output).type) continue;
    if (const auto* link = std::get_if<Source>(&node.inputs[i])) return link;
  }
  return nullptr;
}

ValueHomes::ValueHomes(const Graph& graph, const std::vector<Assignment>& places, const std::vector<NodeIndex>& order) {
  first_.reserve(graph.nodes.size());
  std::uint32_t count = 0;
  for (const Node& node : graph.nodes) {
    first_.push_back(count);
    count += node.type->output_count();
  }
  homes_.resize(count);
  for (const NodeIndex n : order)
    for (std::uint32_t o = 0; o < graph.nodes[n].type->output_count(); ++o) {
      const Source* passed = passed_on(graph.nodes[n], o);
      homes_[first_[n] + o] = passed != nullptr ? of(*passed) : side_of(places[n]);
    }
}

}  // namespace heddle::core
