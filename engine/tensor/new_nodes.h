// What a call of a node asks for instead of giving it itself: a graph of new nodes, and outputs
// that are links into it, or to any other node of the workflow. As the node says it: names are
// resolved when the call is over. A value.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/tensor/value.h"

namespace heddle::engine {

struct NewLink {
  std::string node;  // id
  std::uint32_t output = 0;
};

struct NewNode {
  std::string id;  // of no other node of the run
  std::string class_type;
  std::string display;  // the id that people see; empty: that of the node that asks
  std::vector<std::pair<std::string, std::variant<Value, NewLink>>> inputs;
};

struct NewNodes {
  std::vector<NewNode> nodes;
  std::vector<std::pair<std::uint32_t, NewLink>> outputs;  // of the node that asks, by index
  std::uint32_t graphs = 0;                                // that were given a prefix
  std::string prefix;                                      // the last one
};

}  // namespace heddle::engine
