// What of a divided call each of its devices has. Pure.
#pragma once

#include <functional>
#include <vector>

#include "engine/place/alternatives.h"
#include "engine/place/costs.h"
#include "engine/program/workload.h"

namespace heddle::engine {

// By device of the placement; nothing where one device has all. `load`: of the call on a device of
// the topology; one without sets says what weights there are and no more.
std::vector<CallPart> call_parts(const Graph& graph, const CallPlacement& placement,
                                 const std::function<const CallLoad&(std::uint32_t device)>& load);

// Why a call among devices that differ is divided, or its weights pass, and what share each device
// has: of a report with its alternatives and parts. Empty where it is whole on one device.
// `weight_bytes`: of the model.
std::string why_among_unequal(const CallReport& report, std::uint64_t weight_bytes,
                              const Prices& prices);

}  // namespace heddle::engine
