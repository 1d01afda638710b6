// The least memory with which a node's work can be done at all, as a run would plan it: with its
// devices' kernels and layouts of weights.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/place/plan.h"
#include "engine/program/infer.h"
#include "engine/resources/environment.h"

namespace heddle::engine {

struct MemoryRequirement {
  NodeIndex node = 0;
  std::uint32_t device = 0;
  std::uint64_t min_bytes = 0;      // a budget of so many bytes will do
  std::uint64_t all_bytes = 0;      // with so many nothing is streamed
  std::uint64_t reading_bytes = 0;  // of host memory beside that: its weights pass through it
  std::uint64_t values_bytes = 0;   // of both: what the node reads and makes, beside its calls
  std::string reason;               // of min_bytes: "4.5 KiB for activations, ..."
  // With what the node calls where it finds no room, as a decode in the smallest tiles, whose
  // result differs a little. min_bytes and its reason where there is nothing smaller.
  std::uint64_t tiled_bytes = 0;
  std::string tiled_reason;
};

// For each node and device that it works on: what its calls of models need there, and its values.
// Nodes of which nothing is known are left out. `left_out` gets why a call could not be planned.
struct MemoryRequirements {
  std::vector<MemoryRequirement> needs;
  std::vector<std::string> left_out;
};
MemoryRequirements memory_requirements(const Graph& graph, const Plan& plan,
                                       const Inferred& inferred, const Topology& topology,
                                       const Environment& environment);

// The least budget of host memory, for each node: what a node on the host reads, makes and works
// on; else that of the one device that computes there, and what reading takes beside it. Of several
// such devices each has a share of its own to be told.
struct HostRequirement {
  NodeIndex node = 0;
  // min_bytes and tiled_bytes, as above, include the others. values: of a node on the host.
  std::uint64_t min_bytes = 0, tiled_bytes = 0, reading_bytes = 0, values_bytes = 0;
};
std::vector<HostRequirement> host_requirements(const Graph& graph, const Plan& plan,
                                               const Inferred& inferred,
                                               const std::vector<MemoryRequirement>& needs,
                                               const Environment& environment);

// Throws out_of_memory, with the node, the budget of host memory and what the node takes there,
// where that is more than the host may ever give it. Of nodes on the host that surely run: those
// behind a lazy input may not.
void check_host_nodes(const Graph& graph, const Plan& plan, const Inferred& inferred,
                      std::span<const Source> wanted, const Environment& environment);

// Throws out_of_memory, with the node, the device, its budget and the least it needs, in tiles
// where it can work so, where a device has a budget that is less. False: of some nodes that is not
// known before the run. Asks nothing of a plan whose devices have no budgets.
bool meets_budgets(const Graph& graph, const Plan& plan, const Inferred& inferred,
                   const Topology& topology, const Environment& environment);

}  // namespace heddle::engine
