// Results of earlier processes: the outputs of nodes whose type is flagged
// HEDDLE_NODE_CACHE_ON_DISK, found on disk under a key of all that they are made of. Such a node is
// cut from what it reads, so that nothing above it is described, planned or run for it, and no file
// opened.
//
// The key is the output cache's (keys.h), but for what must not be in it where it outlives the
// process: files count by their content, devices by kind, model and compute type. Besides it holds
// the versions and files of all plugins, as any of them may have a part in a result.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "engine/base/hash.h"
#include "engine/graph/graph.h"
#include "engine/place/topology.h"
#include "engine/program/infer.h"
#include "engine/run/run_files.h"

namespace heddle::engine {

struct Environment;

struct DiskCachedOutputs {
  Hash128 key;                     // of what they are made of
  std::vector<Value> values;       // in host memory; empty: they are not there yet
  UsedFiles files;                 // that the key is made of, as they were then
  bool is_key_of_outputs = false;  // of a run that goes on: what the output cache knows them by
};
using DiskCachedNodes = std::map<NodeIndex, DiskCachedOutputs>;

// Of the needed nodes that may be kept. Those that are found are cut off in `graph`, and nodes that
// neither a sink nor `wanted` needs any more leave its order. Nothing is kept of a node that may
// run on devices of several classes, as its key would have to tell before which it will be, nor of
// one whose files cannot be read: the run says that better. `anew`: nothing is looked for, and what
// is made takes the place of what is there. Any thread.
DiskCachedNodes take_disk_cached(Graph& graph, std::span<const Source> wanted,
                                 const Topology& topology, Environment& environment,
                                 bool anew = false);

// What is known of the nodes that were found.
void add_facts(const DiskCachedNodes& cached, Facts& facts);

// Outputs that a run has made, and that are finished, go to disk, unless a file of their key has
// changed since: nobody knows which content they are made of. Waits for copies from devices.
void write_disk_cached(const DiskCachedOutputs& cached, std::span<const Value> outputs,
                       const Environment& environment);

}  // namespace heddle::engine
