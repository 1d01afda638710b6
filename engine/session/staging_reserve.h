// Room in host memory that weights pass through on their way into a device's layout: what those who
// compute in host memory leave free of it, so that nobody waits for ever for the next weight.
#pragma once

#include <cstdint>

#include "engine/graph/model.h"
#include "engine/place/topology.h"
#include "engine/resources/environment.h"

namespace heddle::engine {

// Bytes of host memory that the model's largest weight takes while it is read, with all parts that
// it is joined of and the pages at their ends. 0: it has none.
std::uint64_t largest_read(const Model& model);

// What a device that computes in host memory leaves free of its budget, when weights of so many
// bytes are read: nothing where the host's budget is larger than those of such devices by that
// much, and nothing of a small budget beside larger ones, which then leave it.
struct StagingReserve {
  std::uint64_t min = 0;     // one weight at a time
  std::uint64_t wanted = 0;  // one that is made into its layout, two read ahead, one that goes
};
// `topology`: of these devices, with what a workflow allows them; `device`: an index into it.
StagingReserve staging_reserve(std::uint64_t largest, std::uint32_t device,
                               const Topology& topology, const Environment& environment);

}  // namespace heddle::engine
