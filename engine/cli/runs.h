// All runs of one call: checked before the first starts, started side by side as far as that keeps
// devices busy (side_by_side.h), reported in their order. Files get the names that they would have
// if the runs came one after another. A run that fails does not keep the others from running.
#pragma once

#include "engine/cli/commands.h"
#include "engine/cli/output.h"
#include "engine/cli/reporter.h"

namespace heddle::cli {

// Returns the exit code of the program: that of the first run that failed. Throws engine::Error and
// EngineError for what is wrong before anything runs.
int run_all(const Request& request, Output& output, Reporter& reporter);

}  // namespace heddle::cli
