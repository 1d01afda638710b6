// Which device each node of a workflow runs on, and how its calls of models are divided. Pure.
#pragma once

#include "engine/plan/plan.h"

namespace heddle::core {

// Hints on nodes are met or refused (not_found, invalid_argument, naming the node and the devices there are); `prefer` is met when
// it can be; nodes without a hint follow their first placed producer, else take the first device.
// REQUIRES: there is a device, and `inferred` has an entry for every node.
Placement place(const Graph& graph, const Inferred& inferred, const Topology& topology);

// Everything on the first device, without a thought: for nodes that read headers only.
Placement place_on_first(const Graph& graph);

}  // namespace heddle::core
