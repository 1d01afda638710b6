// What of a divided call each of its devices has. Pure.
#pragma once

#include <functional>
#include <vector>

#include "engine/place/alternatives.h"
#include "engine/program/workload.h"

namespace heddle::engine {

// By device of the placement; nothing where one device has all. `load`: of the call on a device of
// the topology; one without sets says what weights there are and no more.
std::vector<CallPart> call_parts(const Graph& graph, const CallPlacement& placement,
                                 const std::function<const CallLoad&(std::uint32_t device)>& load);

}  // namespace heddle::engine
