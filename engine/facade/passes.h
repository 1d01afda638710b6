// The way from a workflow to a plan: passes, one after another. prepare() in passes.cpp is the list
// of them, in order; each is a function whose parameters are all that it reads and whose result is
// all that it makes.
//
//   pass              reads                                   makes throws bind_nodes Workflow,
//   Catalog, GivenValues          Graph                             every problem, a line each
//   find_outputs      Graph, Workflow, names                  Sources                           for
//   a name that is none find_devices      Environment, Budgets                    Topology for a
//   budget of a device not used take_disk_cached         Graph, Sources, Topology, disk
//   DiskCachedNodes, and a Graph without these describe_nodes    Graph, headers of model files
//   Described                         what those nodes throw join_facts        Described,
//   DiskCachedNodes                         Facts check_prompts     Graph, Facts for a prompt that
//   is too long infer             Graph, Facts                            Inferred for a value that
//   no input takes place_to_...      Graph, Inferred, Topology, Costs        Plan for hints,
//   budgets not to be met check_host_nodes  Graph, Plan, Inferred, Sources for a node that the host
//   cannot hold find_pending      Graph, Inferred, Described              Plan::pending
//   annotate_calls        Inferred, Prices                        transfers in
//   Plan::places[].calls; only for people add_steps         Graph, Inferred, Topology, Plan
//   Plan::steps; only for people and where plans are verified
//
// A pass that only people need comes last and runs only for them. Of several problems the earliest
// pass tells its own.
#pragma once

#include <string>
#include <vector>

#include "engine/graph/bind.h"
#include "engine/graph/workflow.h"
#include "engine/memory/ledger.h"
#include "engine/place/place.h"
#include "engine/resources/environment.h"
#include "engine/run/describe.h"
#include "engine/run/disk_cached.h"
#include "heddle/engine.hpp"

namespace heddle {

// What a plan may use of each device: what the caller of the engine said of it, else the workflow.
class Budgets {
 public:
  Budgets(const EngineOptions& options, const std::vector<engine::DeviceHint>& hints)
      : options_(options), hints_(hints) {}
  // The devices as they are now. Throws not_found for a hint at a device that is not used.
  engine::Topology of(const engine::Environment& environment) const;
  // Without budgets that nobody gave: those are defaults, which the ledgers keep.
  engine::Topology given_only(engine::Topology topology) const;
  // What the workflow allows the devices, in force as long as they live.
  std::vector<engine::Ledger::Cap> caps(const engine::Environment& environment) const;

 private:
  bool is_limited_by_caller(const std::string& device, const std::string& kind) const;
  const EngineOptions& options_;
  const std::vector<engine::DeviceHint>& hints_;
};

// What a run starts from.
struct Ready {
  engine::Graph graph;
  engine::Plan plan;
  engine::Described described;
  engine::DiskCachedNodes disk_cached;
  engine::Inferred inferred;  // only of plans that somebody looks at
};

// What to do with a node that fails when it is asked what it can say before the run.
enum class Describe { strictly, for_a_run };

struct Asked {
  Describe how = Describe::strictly;  // strictly: for people, who want to see what lacks where
  engine::DeviceLoad device_load = {};
  engine::GivenValues given = {};
  std::vector<std::string> fetch = {};  // NODE.OUTPUT, as in StartOptions
  bool must_fit = true;                 // refuse what host memory can never hold
};

// All passes. Any thread.
Ready prepare(const engine::Workflow& workflow, Asked asked, const EngineOptions& options,
              engine::Environment& environment);

}  // namespace heddle
