// Runs a plan: walks the steps that are ready, computes only what sinks (and lazy inputs, when a node asks for them) need,
// takes from the cache what was made before, lets values go after their last reader. One executor call is one run; many may run at
// once over one Environment.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/plan/plan.h"
#include "engine/run/control.h"
#include "engine/run/environment.h"
#include "engine/run/observer.h"

namespace heddle::core {

struct RunRequest {
  const Graph* graph = nullptr;
  const Plan* plan = nullptr;
  std::string prompt_json;         // for HIDDEN inputs of type PROMPT
  std::string extra_pnginfo_json;  // EXTRA_PNGINFO
  std::vector<Source> keep;        // values wanted after the run, besides what sinks do
};

struct NodeTiming {
  NodeIndex node = 0;
  double seconds = 0;  // from the start of the call to its return; device work may still be running
  bool cached = false;
};

struct RunResult {
  std::map<Source, Value> kept;
  std::vector<NodeTiming> timings;  // in the order of completion
  std::vector<std::string> files;   // written by this run, in order
};

// Blocks until the run is over. Throws what a node failed with, with its trail, or cancelled. When it throws, nothing of the run is
// still executing. Thread-safe.
RunResult execute(const RunRequest& request, Environment& environment, Observer& observer, RunControl& control);

}  // namespace heddle::core
