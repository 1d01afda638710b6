// One step of a plan of a workflow. A value.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/graph/graph.h"

namespace heddle::engine {

inline constexpr std::uint64_t kUnknownBytes =
    ~std::uint64_t(0);  // a shape that only running can tell

struct Step {
  // run: a node, on a device. transfer: one value to one device. release: the memory of a value on
  // a device is given back.
  enum class Kind { run, transfer, release } kind = Kind::run;
  NodeIndex node = 0;      // run: what runs. Else who made the value
  std::uint32_t port = 0;  // of the value
  std::uint32_t
      from = 0,
      to = 0;  // devices of the topology, or kHostSide; of a run and a release both are equal
  std::uint64_t bytes = 0;  // transfer: what crosses, 0 where memory is shared. run: what it
                            // allocates. release: what it gives back
  std::vector<std::uint32_t>
      after;  // earlier steps that have to be done before; there is no other order
};

}  // namespace heddle::engine
