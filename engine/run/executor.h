// Runs a plan: computes what sinks (and lazy inputs, when a node asks for them) need, takes from
// the cache what was made before, lets values go after their last reader. Nodes on different
// devices run at the same time: each device has a queue, and so has the host; inside of a queue
// nodes run one after another, in the graph's order. One executor call is one run; many may run at
// once over one Environment.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/place/plan.h"
#include "engine/resources/environment.h"
#include "engine/resources/timeline.h"
#include "engine/run/control.h"
#include "engine/run/disk_cached.h"
#include "engine/run/finished_outputs.h"
#include "engine/run/observer.h"
#include "engine/run/saved_run.h"
#include "engine/run/step_observer.h"

namespace heddle::engine {

// Writes checkpoints. Called by several threads of a run.
class Checkpoints {
 public:
  virtual ~Checkpoints() = default;
  // A call is between two steps, and could be saved. True: that is wanted.
  virtual bool is_due() = 0;
  // It has been saved; or a node has ended that is not to be run again.
  virtual void write(const SavedRun& saved, Observer& observer) = 0;
};

struct RunRequest {
  const Graph* graph = nullptr;
  const Plan* plan = nullptr;
  std::string prompt_json;         // for HIDDEN inputs of type PROMPT
  std::string extra_pnginfo_json;  // EXTRA_PNGINFO
  std::vector<Source> fetch;       // values wanted after the run, besides what sinks do
  DiskCachedNodes disk_cached;     // as take_disk_cached() has found it in the graph
  Timeline* timeline = nullptr;    // when given, notified of everything; has to outlive the run
  // What is kept of the run where it goes on later, from before and from now on; has to outlive it.
  // nullptr: nothing, and it is never suspended.
  SavedRun* saved = nullptr;
  Checkpoints* checkpoints = nullptr;  // when given, told of every boundary between two steps
  StepObserver* steps = nullptr;       // the same, to hold the run against its plan
  // What an earlier try of the run has left is taken of it; a run that fails leaves there what it
  // had finished. nullptr: there is no next try.
  FinishedOutputs* finished = nullptr;
  bool anew = false;  // what the output cache has of its nodes goes first
};

struct NodeTiming {
  NodeIndex node = 0;
  double seconds = 0;  // from the start of the call to its return; device work may still be running
  bool cached = false;
};

// A node that came while the run was under way.
struct AddedInfo {
  std::string id, class_type;
  std::shared_ptr<const NodeOrigin> origin;  // nullptr: it stands in the workflow, where no output
                                             // needed it
};

struct RunResult {
  // It has given back what it held, because it was told to (RunControl::pause_and_release). What it
  // goes on from stands in RunRequest::saved; here is what it has done until now.
  bool is_suspended = false;
  std::map<Source, Value> fetched;
  // Numbered from the end of the graph's nodes on: where something tells of a node by its index.
  std::vector<AddedInfo> added;
  std::vector<NodeTiming> timings;      // in the order of completion
  std::vector<std::string> files;       // written by this run, in the order of the graph
  std::map<NodeIndex, std::string> ui;  // what nodes show, as JSON; also of those that were cached
  // Outputs of nodes of RunRequest::disk_cached that were made: to be kept, now that they are
  // finished.
  std::vector<std::pair<NodeIndex, std::vector<Value>>> to_cache_on_disk;
  std::uint64_t transferred_bytes = 0;  // between nodes, as the plan's transfers count them
};

// Blocks until the run is over. Works on the caller's thread; others are started only when nodes of
// two queues are ready at the same moment, at most one for each queue, and end with the run; not
// while the node about to run is of a class that has lately taken less than a thread's start.
// Throws what failed first, with its trail, or cancelled. When it throws, nothing of the run is
// still executing. `control` is this run's alone, and is cancelled when a node fails. Thread-safe.
RunResult execute(const RunRequest& request, Environment& environment, Observer& observer,
                  RunControl& control);

}  // namespace heddle::engine
