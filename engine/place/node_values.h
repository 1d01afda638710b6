// What a node has on its device beside the models that it calls.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/program/infer.h"
#include "engine/tensor/shape.h"

namespace heddle::engine {

// Bytes of what the node reads, makes and works on, as far as it tells. `known`: by node.
inline std::uint64_t values_of(const Node& node, const NodeSpec& spec,
                               const std::vector<NodeSpec>& known) {
  std::uint64_t bytes = bytes_of(spec).all();
  const auto read = [&](const Binding& binding) {
    const auto* link = std::get_if<Source>(&binding);
    if (link == nullptr || link->port >= known[link->node].outputs.size()) return;
    for (const auto& [path, info] : known[link->node].outputs[link->port].tensors)
      bytes += dense_bytes(info);
  };
  for (const Binding& input : node.inputs) read(input);
  for (const auto& [name, binding] : node.extra) read(binding);
  return bytes;
}

}  // namespace heddle::engine
