#include "engine/graph/graph.h"

#include "engine/base/text.h"

namespace heddle::engine {

std::string name_of(const Node& node) {
  const std::string type = node.type == nullptr ? "" : cat(" (", node.type->name(), ")");
  if (node.origin == nullptr) return cat("node ", quote(node.id), type);
  // Ids of expansions within each other are long, and end with what tells them apart.
  constexpr std::size_t kLongest = 60;
  const bool is_long = node.id.size() > kLongest;
  return cat("node ", quote(node.origin->display), ", expanded into ",
             quote(is_long ? cat("...", node.id.substr(node.id.size() - kLongest)) : node.id),
             type);
}

std::string Graph::name_of(NodeIndex node) const {
  return node == kGraphInputs ? "the graph's inputs" : engine::name_of(nodes.at(node));
}

}  // namespace heddle::engine
