// The nodes of a run whose outputs are not what their keys say: those that asked not to be cached
// (heddle.cache/0), and all that was made of them. They are the run's alone. Thread-safe; costs one
// load as long as there is none.
#pragma once

#include <atomic>
#include <set>

#include "engine/base/guarded.h"
#include "engine/graph/graph.h"

namespace heddle::engine {

class UncachedNodes {
 public:
  void add(NodeIndex n) {
    nodes_.lock()->insert(n);
    is_any_.store(true, std::memory_order_release);
  }
  bool has(NodeIndex n) const { return is_any() && nodes_.lock()->contains(n); }
  // Whether a node whose inputs are made reads any of them. One that asked for other nodes counts
  // as reading all.
  bool are_read_by(const Node& node) const {
    if (!is_any()) return false;
    if (node.type->has(HEDDLE_NODE_EXPANDS)) return true;
    bool reads = false;
    for_each_binding(node, [&](const Binding& binding) {
      if (const auto* link = std::get_if<Source>(&binding)) reads = reads || has(link->node);
    });
    return reads;
  }

 private:
  bool is_any() const { return is_any_.load(std::memory_order_acquire); }
  Guarded<std::set<NodeIndex>> nodes_;
  std::atomic<bool> is_any_{false};
};

}  // namespace heddle::engine
