#include "engine/run/executor.h"

#include "engine/run/execution.h"

namespace heddle::engine {

RunResult execute(const RunRequest& request, Environment& environment, Observer& observer,
                  RunControl& control) {
  return Execution(request, environment, observer, control).run();
}

}  // namespace heddle::engine
