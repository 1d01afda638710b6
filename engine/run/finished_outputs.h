// What a run that has failed leaves to its next try: the outputs of nodes that had finished, so
// that it goes on from there, whatever the output cache has kept. A plain value; the run's own
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/hash.h"
#include "engine/tensor/value.h"

namespace heddle::engine {

struct FinishedOutputs {
  struct Node {
    // By output; empty: nobody will read it. Then what the node shows, as the output cache has it.
    std::vector<Value> outputs;
    Hash128 key;               // under which they were made
    bool is_uncached = false;  // and are not what it says
  };
  std::map<std::string, Node> nodes;  // by id
  // The device that had no room for a node that works in tiles, where that was the failure.
  std::optional<std::uint32_t> crowded;
};

}  // namespace heddle::engine
