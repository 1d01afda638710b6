// heddle run --server: the runs are jobs of a server, and what they make comes here.
#pragma once

#include "engine/cli/commands.h"
#include "engine/cli/reporter.h"

namespace heddle::cli {

// Reports as run_all() does, one job after another. Files of the output folder are written into
// the one here, under the next name that is free. A signal cancels the jobs. Throws as
// submission_of() does.
int run_on_server(const Request& request, Output& output, Reporter& reporter);

}  // namespace heddle::cli
