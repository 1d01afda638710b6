// A MODEL as a value: a block graph, where its weights come from, and what its readers need to
// know. Immutable: nodes that change a model make another one that shares everything else. Any
// thread.
#pragma once

#include <memory>
#include <string>

#include "engine/base/hash.h"
#include "engine/graph/graph.h"

namespace heddle::engine {

class Catalog;
class Checkpoint;     // engine/files
class WeightPatches;  // engine/files

class Model {
 public:
  std::string family;  // "flux"
  std::string role;    // what the loader asked for
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Checkpoint> checkpoint;
  std::shared_ptr<const WeightPatches>
      patches;     // added to the checkpoint's weights on their way to a device; nullptr: none
  Value settings;  // a record
  Hints hints;     // of the loader node, for the blocks
  std::weak_ptr<const Catalog> catalog;  // of the families that may build it anew
  Hash128 identity;  // of the files, the patches and the family's version: equal models have equal
                     // weights and graphs
};

}  // namespace heddle::engine
