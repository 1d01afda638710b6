#include "engine/graph/graph.h"

#include "engine/base/text.h"

namespace heddle::engine {

std::string Graph::name_of(NodeIndex node) const {
  if (node == kGraphInputs) return "the graph's inputs";
  const Node& n = nodes.at(node);
  return n.type == nullptr ? cat("node ", quote(n.id))
                           : cat("node ", quote(n.id), " (", n.type->name(), ")");
}

}  // namespace heddle::engine
