// How long one call of a model takes when its blocks are placed so and so, and what it needs of
// each device: a simulation by lists, in which a device runs one block at a time, copies overlap
// computing, and a step begins when the one before has come home. Pure.
//
// A block takes what its ops take one after another. Of divisions, tokens and heads change places
// around each attention, and the ranks' sums are put together behind each GEMM that has parts
// of them; nobody computes meanwhile.
//
// A device that rests while others compute is faster afterwards, where its prices say so; of ways
// that stream that is left out.
//
// Left out: workspaces of kernels, which only a device knows; that memory which another device
// reads or writes stays occupied for a whole step; and, of divisions by tokens and rows, what
// exchanges have to hide behind, that branches overlap, and the ways of parts from and to blocks
// that are not divided. `heddle plan` tells the true bytes of the way that is taken.
#pragma once

#include <memory>
#include <vector>

#include "engine/place/alternatives.h"
#include "engine/place/costs.h"
#include "engine/program/workload.h"

namespace heddle::engine {

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
  double seconds = 0;                // all steps, and what runs or comes once
  double step_seconds = 0;           // of these, each step
  std::uint64_t transfer_bytes = 0;  // between devices, in one step
  std::uint64_t page_bytes = 0;      // weights that come from host memory, in one step
  std::vector<DeviceNeed> needs;     // by device of the placement
  bool fits() const;
};

CallEstimate estimate(const CallCase& call, const CallPlacement& placement);
// All of it on one device, called from there.
CallEstimate estimate_alone(const CallCase& call, std::uint32_t device);

// Whether what follows can tell what streaming takes: of blocks that are whole.
bool can_stream(const CallPlacement& placement);
// Weights that find no room beside the activations pass through a staging ring in every step, as
// plan_paging() has it: from devices that take no part and lend room, as if nobody else used them,
// the rest from host memory.
// REQUIRES: can_stream().
CallEstimate estimate_streamed(const CallCase& call, const CallPlacement& placement);

}  // namespace heddle::engine
