// Builds MODEL values: asks the model families of a role, lets the best one declare its block
// graph, checks the graph. The checks find what a family got wrong before anything runs.
#pragma once

#include "engine/graph/catalog.h"
#include "engine/graph/model.h"
#include "engine/plugin/host.h"

namespace heddle::engine {

// Throws unsupported, naming the families that were asked, when none matches; and what the family
// throws, with a frame naming it.
Value build_model(const Catalog& catalog, std::string_view role, const Checkpoint& checkpoint,
                  const heddle_value* config, const Hints& hints);

}  // namespace heddle::engine
