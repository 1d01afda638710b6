// A workflow graph with a place for every node, which is what a run carries out; and, for whoever
// asks to see them, the steps that follow from it: runs, transfers and releases, each with what it
// waits for. A value; making it is pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/place/alternatives.h"
#include "engine/place/device_load.h"
#include "engine/place/staged_calls.h"
#include "engine/place/step.h"
#include "engine/place/topology.h"
#include "engine/program/infer.h"

namespace heddle::engine {

struct Assignment {
  std::uint32_t device = 0;  // home: where the node's own ops run and its outputs are made
  std::vector<std::uint32_t> devices;  // all that the node and its calls use, home first
  bool on_host = false;  // a host-only node: runs on the host, and its tensors are made there
  std::string reason;    // "hint of the node", "host-only", "first device"
  std::vector<PlacedCall> calls;  // as in NodeSpec::calls; of a node that reports none, by model
  bool borrows_memory = true;     // what its calls stream may lie on devices that take no part
  std::optional<PlacedStages> stages = {};  // nothing: one call after another
  std::string undivided =
      {};  // why calls that are rounds of stages have none; empty: nothing to say
};

// The device that a call of a node is made from.
inline std::uint32_t home_of(const PlacedCall& call, std::uint32_t node) {
  return call.is_stage ? call.placement.devices.front() : node;
}
inline std::uint32_t home_of(const Assignment& assignment, std::size_t call) {
  return home_of(assignment.calls[call], assignment.device);
}
// Bytes of a device beside its calls, of all rounds under way.
inline std::uint64_t under_way(const Assignment& assignment, std::uint32_t device) {
  return assignment.stages && device < assignment.stages->under_way_bytes.size()
             ? assignment.stages->under_way_bytes[device]
             : 0;
}

struct Plan {
  std::vector<Assignment> assignments;  // by node
  std::vector<NodeIndex> order;         // in which nodes start when several are ready; topological
  std::vector<Step> steps;              // from add_steps(); a run needs none
  std::vector<std::uint32_t> homes;     // by output, as find_homes() of value_flow.h tells
  std::vector<std::uint64_t> host_bytes;  // by node: what its call takes of host memory, as far
                                          // as it tells; empty: nothing is known
  // By node: what its call takes of its device's memory, as far as it tells; 0: nothing is known,
  // or it calls models, whose sessions make room for all of it. Empty: nothing is known.
  std::vector<std::uint64_t> device_bytes;
  std::vector<std::string> pending;  // "NODE.OUTPUT": shapes known at run time only
  std::vector<std::string> warnings;
  double seconds = 0;                   // estimated; 0: nothing is known
  std::vector<double> device_seconds;   // how long each device is busy of these, without loading
  std::vector<PlannedLoad> loads;       // one for each model and device; those that pass: each
  Fidelity fidelity = Fidelity::exact;  // that it was placed with
};

// What placement decided.
struct Placement {
  std::vector<Assignment> assignments;  // by node
  std::vector<NodeIndex> order;         // empty: the graph's
  std::vector<std::string> warnings;
  double seconds = 0;
  std::vector<double> device_seconds;  // as in Plan
  std::vector<PlannedLoad> loads;
  Fidelity fidelity = Fidelity::exact;
};

// Without steps.
Plan make_plan(const Graph& graph, Placement placement, const Inferred& inferred,
               const Topology& topology);

// The steps that a run of the plan takes, from the rules of value_flow.h, by which it takes them:
// one transfer for each (value, place), shared by all its readers; none where memory is shared, and
// for values without tensors. A value is released at a place after the last step that reads it
// there. Lazy inputs are among them: whether they run is known only later. Linear in nodes and
// links, but for a logarithm.
void add_steps(const Graph& graph, const Inferred& inferred, const Topology& topology, Plan& plan);

// Bytes of the tensors of an output; kUnknownBytes when nothing is known of it.
std::uint64_t bytes_of(const ValueSpec& value, std::string_view port_type);

}  // namespace heddle::engine
