// The files that a workflow says where to get and that are not there. Pure; any thread.
#pragma once

#include <vector>

#include "engine/graph/catalog.h"
#include "engine/graph/workflow.h"

namespace heddle::engine {

// Adds a problem for each of them where there is an error already: also for those of nodes whose
// class is unknown here. A workflow that can run does without. What only a node that is not there
// any more tells of, or one that loads another file by now, is left out.
void add_missing_models(const Workflow& workflow, const Catalog& catalog,
                        std::vector<Problem>& problems);

}  // namespace heddle::engine
