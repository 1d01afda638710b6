// Holds a plan of a workflow against the rules that any plan has to keep, without a line of the
// planner's: what stands where follows from the graph and the placement alone.
//   every node runs once, where it was placed; nobody waits for what comes later
//   whatever a run reads is there: made there, in memory shared with there, or sent there; and the
//     run waits for it, directly or through what it waits for
//   one transfer for each value and destination, from where the value stands to where it does not
//   every value is released once in each place where it was, after all that read it there, and
//     values that hold the same tensors before those they hold
// Pure; quadratic in steps.
#pragma once

#include <string>
#include <vector>

#include "engine/place/plan.h"

namespace heddle::engine {

// The faults, a line each; empty: the plan is right. REQUIRES: add_steps() has been called.
std::vector<std::string> plan_faults(const Graph& graph, const Plan& plan, const Inferred& inferred,
                                     const Topology& topology);

// Of a plan that fits: no call wants more of a device than is there, and what is alive never
// exceeds what may be used of a device. What is known of none of its bytes (kUnknownBytes) counts
// as nothing in the sums.
std::vector<std::string> memory_faults(const Graph& graph, const Plan& plan,
                                       const Inferred& inferred, const Topology& topology);

// Throws an internal error with the first of plan_faults(). Behind the planner, in debug and
// sanitizer builds: of more than 1,000 steps, whose order alone would fill memory, nothing is held.
void verify_plan(const Graph& graph, const Plan& plan, const Inferred& inferred,
                 const Topology& topology);

}  // namespace heddle::engine
