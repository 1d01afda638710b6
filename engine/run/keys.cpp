#include "engine/run/keys.h"

namespace heddle::core {

std::vector<std::optional<Hash128>> output_keys(const Graph& graph, const std::function<std::string(NodeIndex)>& form,
                                                const std::function<std::uint64_t(NodeIndex)>& fingerprint) {
  std::vector<std::optional<Hash128>> keys(graph.nodes.size());
  Hasher hasher;
  for (const NodeIndex n : graph.order) {
    const Node& node = graph.nodes[n];
    if (node.type->has(HEDDLE_NODE_IMPURE)) continue;
    hasher = Hasher();
    hasher.add(node.type->name()).add(node.type->desc().version).add(std::string_view(form(n)));
    // A model keeps its loader's hints, and these ways of dividing work change what is computed.
    const Hints& hints = node.hints;
    if (node.type->has(HEDDLE_NODE_DESCRIBES)) {
      hasher.add(hints.device).add(hints.prefer).add(hints.split).add(hints.blocks.size());
      for (const BlockHint& block : hints.blocks) hasher.add(block.match).add(block.device);
    } else if (hints.split == "sequence" || hints.split == "rows") {
      hasher.add(hints.split);
    }
    bool known = true;
    const auto add = [&](std::string_view name, const Binding& binding) {
      if (const auto* link = std::get_if<Source>(&binding)) {
        known = known && keys[link->node].has_value();
        if (known) hasher.add(name).add(*keys[link->node]).add(link->port);
      } else if (const auto* literal = std::get_if<Value>(&binding)) {
        hasher.add(name);
        known = known && hash_value(**literal, hasher);
      }
    };
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) add(node.type->input(i).name, node.inputs[i]);
    for (const auto& [name, binding] : node.extra) add(name, binding);
    if (known && node.type->desc().fingerprint != nullptr) hasher.add(fingerprint(n));
    if (known) keys[n] = hasher.finish();
  }
  return keys;
}

}  // namespace heddle::core
