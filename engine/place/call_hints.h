// What the hints of a loader and of a caller ask of one call of a model, read against the devices
// and blocks there are. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/graph/model.h"
#include "engine/place/topology.h"
#include "engine/program/call_placement.h"

namespace heddle::engine {

struct CallWish {
  std::vector<std::uint32_t> devices;    // those that may be used; empty: nobody said
  bool all_devices = false;              // every one of them is meant
  std::optional<ParallelMode> parallel;  // forced
  std::vector<std::uint32_t>
      of_block;        // by node: a device of the topology; empty: no blocks were named
  std::string reason;  // "device of the loader"; empty: nobody asked for anything
};

// Throws invalid_argument naming the nearest and all there are.
ParallelMode read_parallel(std::string_view name);

// Throws not_found for unknown devices and for patterns that match no block, invalid_argument for
// an unknown parallel mode and for patterns that cut a group. Blocks that no pattern matches go
// where the loader's device, else `home`, is.
CallWish read_call_hints(const Model& model, const Hints& caller, std::uint32_t home,
                         const Topology& topology);

}  // namespace heddle::engine
