// Which models the runs under way have still to use, and how soon: what eviction goes by. A use is
// known from the moment on at which the node that gives the model is done. Thread-safe.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/guarded.h"
#include "engine/graph/graph.h"
#include "engine/memory/weights.h"
#include "engine/tensor/value.h"

namespace heddle::engine {

class RunForecast;

class Forecast {
 public:
  // Of all runs: how many nodes of its run come first, at least.
  NextUses next_uses() const;

 private:
  friend class RunForecast;
  Guarded<std::vector<const RunForecast*>> runs_;
};

// One run's part. Calls are for any thread of the run.
class RunForecast {
 public:
  // `forecast` and `graph` outlive it. `order`: the nodes as they start.
  RunForecast(Forecast& forecast, const Graph& graph, const std::vector<NodeIndex>& order);
  ~RunForecast();
  RunForecast(const RunForecast&) = delete;

  // Nodes that came while the run was under way are passed over: what they read was read by the
  // node that asked for them, or stands in the graph itself.
  //
  // The node's outputs are there. Costs a look at each of them, unless there are models inside.
  void made(NodeIndex node, std::span<const Value> outputs) {
    for (const Value& output : outputs)
      if (output && kind_of(*output) >= HEDDLE_KIND_LIST) return note_models(node, outputs);
  }
  void began(NodeIndex node) {
    if (any_.load(std::memory_order_relaxed)) note_began(node);
  }
  void done(NodeIndex node) {
    if (any_.load(std::memory_order_relaxed)) note_done(node);
  }

 private:
  void note_models(NodeIndex node, std::span<const Value> outputs);
  void note_began(NodeIndex node);
  void note_done(NodeIndex node);
  friend class Forecast;
  struct State {
    std::vector<std::vector<NodeIndex>> readers;     // by node; made when the first model is there
    std::vector<std::uint32_t> rank;                 // by node; with them
    std::map<NodeIndex, std::vector<Hash128>> uses;  // by reader
    std::uint32_t at = 0;                            // rank of the last node that began
  };
  void find_readers(State& state) const;

  Forecast& forecast_;
  const Graph& graph_;
  const std::vector<NodeIndex>& order_;
  std::atomic<bool> any_{false};
  Guarded<State> state_;
};

}  // namespace heddle::engine
