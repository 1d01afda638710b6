// Weights that a run wants later: while a node works, the files of the models that the next one
// calls are read into host memory. So the second of two models comes from there when its turn
// comes, whether it then stays on its device or is streamed.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "engine/base/guarded.h"
#include "engine/memory/prefetcher.h"
#include "engine/place/plan.h"
#include "engine/resources/environment.h"
#include "engine/resources/timeline.h"

namespace heddle::engine {

// Of one run. Calls are for any thread of it. What lies on the node's device already is not read,
// and nothing that work under way wants goes for what is (ExpectedParts::is_later).
class ReadAhead {
 public:
  // Of nodes that run in any case. wanted: outputs, besides those of sinks; timeline: may be
  // nullptr. All but `wanted` outlives this.
  ReadAhead(const Graph& graph, const Plan& plan, std::span<const Source> wanted,
            Environment& environment, Timeline* timeline);

  void began(NodeIndex node) {
    if (!callers_.empty()) note_began(node);
  }
  void done(NodeIndex node) {
    if (!callers_.empty()) note_done(node);
  }

 private:
  struct State {
    std::set<NodeIndex> under_way, done;  // of callers_
    std::map<NodeIndex, std::vector<Expectation>> expected;
  };
  bool calls_models(NodeIndex node) const {
    return std::ranges::find(callers_, node) != callers_.end();
  }
  void note_began(NodeIndex node);
  void note_done(NodeIndex node);
  std::set<Hash128> models_of(const std::set<NodeIndex>& nodes) const;
  // Of its calls, but for those of `models`: other nodes load them, or it does by another call.
  std::vector<Expectation> expect(const Assignment& assignment, std::set<Hash128> models) const;

  const Plan& plan_;
  Environment& environment_;
  Timeline* const timeline_;
  std::vector<NodeIndex> callers_;  // nodes that call models, in the order
  Guarded<State> state_;
};

}  // namespace heddle::engine
