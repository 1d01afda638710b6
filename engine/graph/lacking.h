// Classes and files that a workflow needs and that are not there: each is told once, before
// whatever else is wrong, so that a user sees all that has to be got. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/catalog.h"
#include "engine/graph/prompt_verdict.h"
#include "engine/graph/workflow.h"

namespace heddle::engine {

// What Fault::lacks and Problem::lacks hold: equal for the same class, for the same file.
std::string lacking_class(std::string_view name);
std::string lacking_file(std::string_view folder, std::string_view name);

// Whether this input of a node of unknown class names a file of a model (by how it ends) that lies
// in no model folder, and that Workflow::models does not tell of. False where nobody knows the
// folders.
bool names_missing_model(const WorkflowInput& input, const Workflow& workflow,
                         const Catalog& catalog);

// A problem for each fault, and one for all faults that lack the same; that one is an error if any
// of them is, names the other nodes, and stands where its first error is. Linear.
std::vector<Problem> tell_once(std::vector<Fault> faults, const Workflow& workflow);

// Errors that say what is lacking come first; all else keeps its order.
void put_lacking_first(std::vector<Problem>& problems);

}  // namespace heddle::engine
