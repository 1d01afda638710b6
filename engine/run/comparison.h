// What the plan said a run would take, held against what it took. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/place/costs.h"
#include "engine/run/executor.h"

namespace heddle::engine {

struct PlannedTime {
  double seconds = 0;       // of the node's calls of models; 0: nothing was known
  double load_seconds = 0;  // of bringing their weights, besides, when they are not there yet
};
PlannedTime planned_time(const Plan& plan, NodeIndex node);

// A line for every node of at least 0.1 s that took more than a fifth more, or less, than planned,
// and one for the whole run; after them one line of advice, if there is one to give. Whether
// weights were loaded is not known, so that a node may take anything between its seconds without
// and with them. `seconds`: of the whole run.
std::vector<std::string> prediction_against_fact(const Graph& graph, const Plan& plan,
                                                 std::span<const NodeTiming> timings,
                                                 double seconds, const Costs& costs);

}  // namespace heddle::engine
