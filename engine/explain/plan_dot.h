// A plan as a drawing: a box for each node in the colour of its device (stripes, where its calls
// use several), dashed edges with their bytes where a value crosses, and a legend. In the language
// of Graphviz; sorted, the same on every machine. Pure.
#pragma once

#include <string>

#include "engine/place/plan.h"

namespace heddle::engine {

std::string plan_dot(const Graph& graph, const Plan& plan, const Topology& topology);

}  // namespace heddle::engine
