// Which device each node of a workflow runs on, and how its calls of models are divided. Pure.
#pragma once

#include "engine/place/costs.h"
#include "engine/place/device_load.h"
#include "engine/place/plan.h"
#include "engine/program/workload.h"

namespace heddle::engine {

struct PlaceRequest {
  const Graph& graph;
  const Inferred& inferred;  // an entry for every node
  const Topology& topology;  // at least one device
  const Costs& costs;
  // What has no room: refuse it, or place it all the same, with a warning.
  enum class Misfits { refused, warned } misfits = Misfits::refused;
  LoadOf load_of = {};  // empty: call_load() of the model; what that cannot record is unknown
  DeviceLoad device_load = {};
  Fidelity fidelity = Fidelity::exact;
  bool may_stage = true;  // calls in rounds of stages may be divided over devices
};

// Hints are met or refused (not_found, invalid_argument, out_of_memory; with the node, the devices
// there are, bytes wanted and there); `prefer` is met when it can be. What has no hint is placed
// where everything together is done soonest, among ways that fit and, but for Fidelity::rounding,
// that give the same bytes: computing nodes stay on devices of one kind, model and compute type,
// unless memory is short there: then weights are pooled over other models of the kind, and where
// nothing fits, over other kinds. Fidelity::rounding spreads work over all kinds where that is
// faster. The same question always has the same answer.
Placement place(const PlaceRequest& request);

// A loader's own input called "device" is a hint, too, where it names something and the node has no
// other.
void take_device_inputs(Graph& graph);

// Everything on the first device, without a thought: for nodes that read headers only.
Placement place_on_first(const Graph& graph);

}  // namespace heddle::engine
