// How long one call of a model takes when its blocks are placed so and so, and what it needs of
// each device: a simulation by lists, in which a device runs one block at a time, copies overlap
// computing, and a step begins when the one before has come home. Pure.
//
// Left out: workspaces of kernels, which only a device knows; that memory which another device
// reads or writes stays occupied for a whole step; and, of divisions by tokens and rows, how often
// a block exchanges something (each output counts as put together once), that sets overlap, and the
// ways of parts from and to blocks that are not divided. `heddle plan` tells the true bytes of the
// way that is taken.
#pragma once

#include <memory>
#include <vector>

#include "engine/plan/alternatives.h"
#include "engine/plan/costs.h"
#include "engine/plan/load.h"

namespace heddle::core {

// A call as placement sees it.
struct CallCase {
  const Graph& graph;  // of the model
  std::vector<std::shared_ptr<const CallLoad>>
      loads;               // by device of the topology, in its compute type
  std::uint32_t home = 0;  // where the inputs are and the outputs go
  const Prices& prices;

  const CallLoad& load(std::uint32_t device) const { return *loads[device]; }
};

struct CallEstimate {
  double load_seconds = 0;           // weights from host memory; several devices at the same time
  double seconds = 0;                // all steps, and what runs once
  std::uint64_t crossing_bytes = 0;  // between devices, in one step
  std::uint64_t page_bytes = 0;      // weights that come from host memory, in one step
  std::vector<DeviceNeed> needs;     // by device of the placement
  bool fits() const;
};

CallEstimate estimate(const CallCase& call, const CallPlacement& placement);

// Whether what follows can tell what streaming takes: of blocks that are whole.
bool can_stream(const CallPlacement& placement);
// Weights that find no room beside the activations pass through a ring in every step, as
// plan_paging() has it, at the grain of blocks: a block takes its time evenly over its weights.
// All of them from host memory: that idle devices may lend room makes it no longer.
// REQUIRES: can_stream().
CallEstimate estimate_streamed(const CallCase& call, const CallPlacement& placement);

}  // namespace heddle::core
