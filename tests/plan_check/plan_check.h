// Holds a plan of a workflow against the rules that any plan has to keep, without a line of the
// planner's: what stands where follows from the graph and the placement alone.
//   every node runs once, where it was placed; nobody waits for what comes later
//   whatever a run reads is there: made there, in memory shared with there, or sent there; and the
//     run waits for it, directly or through what it waits for
//   one transfer for each value and destination, from where the value stands to where it does not
//   every value is released once in each place where it was, after all that read it there, and
//     values that hold the same tensors before those they hold
//   no call wants more of a device than is there, and what is alive never exceeds a device's room
// What is known of none of its bytes (kUnknownBytes) counts as nothing in the sums.
#pragma once

#include <string>
#include <vector>

#include "engine/place/plan.h"

namespace heddle::test {

// The faults, a line each; empty: the plan is right.
std::vector<std::string> plan_faults(const core::Graph& graph, const core::Plan& plan,
                                     const core::Inferred& inferred,
                                     const core::Topology& topology);

}  // namespace heddle::test
