// What a node asks before it runs, in a worker: the services heddle.infer/0, heddle.cost/0 and
// heddle.validation/0, whose answers come from the engine.
#pragma once

#include <string>
#include <vector>

#include "engine/isolate/worker_lane.h"

namespace heddle::engine {

// Stands behind heddle_infer and heddle_validation there. Belongs to one call.
struct WorkerQuestion {
  explicit WorkerQuestion(WorkerLane& lane) : lane(lane), end(lane.memory()) {}
  WorkerLane& lane;
  WorkerEnd end;
  std::vector<Value> values;  // that it has been lent, until it ends
  std::vector<std::unique_ptr<std::string>> texts;
};

// Offers the services to plugins instead of the engine's own. Once, before any is loaded.
void offer_worker_services();

}  // namespace heddle::engine
