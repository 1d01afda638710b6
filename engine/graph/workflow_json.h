// A workflow that is JSON already, because it was converted to the API form. Pure; any thread.
#pragma once

#include "engine/graph/workflow.h"

namespace heddle::engine {

// As parse_workflow(), of a text that was read; places are those of the values.
Workflow workflow_of(const Json& json, std::string_view name);

}  // namespace heddle::engine
