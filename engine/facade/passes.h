// The way from a workflow to a plan: passes, one after another. prepare() in passes.cpp is the list
// of them, in order; each is a function whose parameters are all that it reads and whose result is
// all that it makes.
//
//   pass              reads                                   makes
//   bind_nodes        Workflow, Catalog, GivenValues          Graph
//   find_outputs      Graph, Workflow, names                  Sources
//   find_devices      Environment, Budgets, Asked             Topology
//   take_disk_cached  Graph, Sources, Topology, disk          DiskCachedNodes; cuts the Graph
//   find_made_of      Graph, content of files                 keys; only with checkpoints
//   go_on             Graph, Sources, Topology, Asked         DiskCachedNodes; cuts the Graph
//   describe_nodes    Graph, headers of model files           Described
//   join_facts        Described, DiskCachedNodes              Facts
//   check_prompts     Graph, Facts                            nothing
//   infer             Graph, Facts                            Inferred
//   place_by_budgets  Graph, Inferred, Topology, Costs,       Plan; to show one, with warnings
//                     Budgets
//   check_places      Graph, Plan, Topology, Asked            nothing; of a run that goes on
//   check_host_nodes  Graph, Plan, Inferred, Sources          nothing; only with Asked::must_fit
//   find_pending      Graph, Inferred, Described              Plan::pending
//   keep_exact        Graph, Plan                             drops from DiskCachedNodes
//   annotate_calls    Inferred, Prices                        PlacedCall::transfers; only to show
//   add_steps         Graph, Inferred, Topology, Plan         Plan::steps; only to show or verify
//
// What they throw:
//   bind_nodes        every problem of the workflow, one per line
//   find_outputs      a name that is no output
//   find_devices      a budget of a device that is not used
//   find_made_of      what has changed since the run was begun
//   describe_nodes    what these nodes throw; for a run only what the workflow is to blame for
//   check_prompts     a prompt that is too long
//   infer             a value that no input takes
//   place_by_budgets  hints that cannot be met; for a run budgets, too
//   check_places      a node that would give other bytes where it is now
//   check_host_nodes  a node that host memory cannot hold
//
// Of several problems the earliest pass reports its own.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/graph/bind.h"
#include "engine/graph/workflow.h"
#include "engine/memory/ledger.h"
#include "engine/place/place.h"
#include "engine/resources/environment.h"
#include "engine/run/checkpoint_file.h"
#include "engine/run/describe.h"
#include "engine/run/disk_cached.h"
#include "heddle/engine.hpp"

namespace heddle {

// What a plan may use of each device: what the caller of the engine said of it, else the workflow.
class Budgets {
 public:
  Budgets(const EngineOptions& options, const std::vector<engine::DeviceHint>& hints);
  // The devices as they are now. Throws not_found for a hint at a device that is not used.
  engine::Topology of(const engine::Environment& environment) const;
  // Without budgets that nobody gave: those are defaults, which the ledgers keep.
  engine::Topology given_only(engine::Topology topology) const;
  // What the workflow allows the devices, in force as long as they live.
  std::vector<engine::Ledger::Cap> caps(const engine::Environment& environment) const;

 private:
  bool is_limited_by_caller(const engine::DeviceNames& device) const;
  const EngineOptions& options_;
  std::map<std::string, std::uint64_t> by_workflow_;  // by what the workflow names devices by
};

// What a run starts from.
struct Ready {
  engine::Graph graph;
  engine::Plan plan;
  engine::Described described;
  engine::DiskCachedNodes disk_cached;
  engine::Inferred inferred;
  engine::Topology topology;             // that it was planned for
  std::vector<engine::Source> wanted;    // of Asked::fetch
  std::vector<engine::Hash128> made_of;  // by node; only with Asked::hashes
};

// What to do with a node that fails when it is asked what it can say before the run.
enum class Describe { strictly, for_a_run };

struct Asked {
  Describe how = Describe::strictly;  // strictly: for people, who want to see what lacks where
  engine::DeviceLoad device_load = {};
  engine::GivenValues given = {};
  std::vector<std::string> fetch = {};  // NODE.OUTPUT, as in StartOptions
  bool must_fit = true;                 // refuse what host memory can never hold
  bool partly = false;                  // run the outputs that can run, as in StartOptions
  std::map<std::uint32_t, std::string> avoid = {};  // devices, and why
  bool by_budget = false;           // plan as if other programs held nothing: they are waited for
  engine::SavedContent saved = {};  // of the same run, which goes on
  // For runs with checkpoints: what finds the content of files, and what the run was begun with in
  // another process. Else nullptr.
  engine::FileHashes* hashes = nullptr;
  const engine::CheckpointContent* begun = nullptr;
  std::optional<Fidelity> fidelity = {};  // nothing: EngineOptions::fidelity
  bool anew = false;                      // take nothing from disk that earlier runs have kept
};

// All passes. Any thread.
Ready prepare(const engine::Workflow& workflow, Asked asked, const EngineOptions& options,
              engine::Environment& environment);

}  // namespace heddle
