// What a run needs of each memory at a time: the values that are there together, and beside them
// what its calls of models take. Counted before it runs, from its plan.
#pragma once

#include <span>
#include <vector>

#include "engine/place/plan.h"
#include "engine/resources/admission_queue.h"
#include "engine/resources/environment.h"

namespace heddle::engine {

// By memory: a device's number, or that of devices for host memory, which has what CPU devices
// need, too. `topology`: with the budgets that the workflow gives. `wanted`: outputs that are kept
// to the end. Nodes run in the plan's order, one at a time; what runs beside another node is not
// counted twice. Nothing is known of nodes that come while the run is under way. Of a
// call that says nothing before it is made the weights are counted, and a quarter more.
std::vector<MemoryNeed> run_needs(const Graph& graph, const Plan& plan, const Inferred& inferred,
                                  std::span<const Source> wanted, const Topology& topology,
                                  Environment& environment);

// The same numbers: bytes that all runs may have, of a ledger that asks its driver; and what they
// might have if other programs held nothing.
std::uint64_t capacity_of(std::uint32_t memory, Environment& environment);
std::uint64_t budget_of(std::uint32_t memory, Environment& environment);

}  // namespace heddle::engine
