// Which nodes of a run have still something to do on devices: when none has, what is left, such as
// writing files, needs none of the memory that other runs wait for. Any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "engine/base/guarded.h"
#include "engine/graph/graph.h"
#include "engine/place/plan.h"

namespace heddle {

class DeviceNodes {
 public:
  // Where nodes may ask for more nodes as they run, nobody knows what is left, and it is not told.
  DeviceNodes(const engine::Graph& graph, const engine::Plan& plan) {
    const auto state = state_.lock();
    for (const engine::NodeIndex n : graph.order)
      if (!plan.assignments[n].on_host || !plan.assignments[n].calls.empty()) {
        state->is_pending.resize(graph.nodes.size());
        state->is_pending[n] = true;
        ++state->left;
      }
    const auto expands = [&](engine::NodeIndex n) {
      return graph.nodes[n].type->has(HEDDLE_NODE_EXPANDS);
    };
    if (state->left > 0 && std::ranges::any_of(graph.order, expands)) *state = {};
  }

  // The node is done, or its results were there.
  void done(std::size_t node) {
    const auto state = state_.lock();
    if (node >= state->is_pending.size() || !state->is_pending[node]) return;
    state->is_pending[node] = false;
    --state->left;
  }
  // A node begins, and all that it reads is there. True, once: it is on the host, as all are that
  // come.
  bool are_over_at(std::size_t node) {
    const auto state = state_.lock();
    if (state->left > 0 || node >= state->is_pending.size()) return false;
    state->is_pending.clear();
    return true;
  }

 private:
  struct State {
    std::vector<bool> is_pending;  // by node; empty: there is nothing to tell
    std::size_t left = 0;
  };
  engine::Guarded<State> state_;
};

}  // namespace heddle
