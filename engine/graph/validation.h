// Asks nodes that judge their literals themselves (heddle/abi/validate.h). Pure as far as nodes
// are; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/literal.h"
#include "engine/graph/prompt_verdict.h"

namespace heddle::engine {

// What is wrong with an input: for people (a sentence or two) and as ComfyUI's server says it.
struct JudgedFault {
  std::string input;
  std::string text;
  Json error;
  std::string lacks;  // as Fault::lacks
};

// One for each input that the validator of a node's type names and the node has; none: it has
// no validator, or nothing is wrong. A file that is not there is told with where it was looked for.
// `types`: of all nodes, by the numbers that links have. A validator that fails in another way is
// told in the same words.
std::vector<JudgedFault> faults_of_validator(const Node& node,
                                             const std::vector<NodeTypeRef>& types,
                                             const Catalog& catalog, LiteralReader& literals);

}  // namespace heddle::engine

// What the service of validators answers from.
struct heddle_validation {
  const heddle::engine::Node& node;
  const std::vector<heddle::engine::NodeTypeRef>& types;
  heddle::engine::LiteralReader& literals;
};
