// The ways in which the nodes of a workflow may be placed, node by node: what hints leave open,
// priced. Pure.
#pragma once

#include <deque>
#include <map>

#include "engine/place/list_schedule.h"
#include "engine/place/place.h"

namespace heddle::engine {

struct NodeOption {
  Assignment assignment;
  TaskOption task;
  bool fits = true;
  // By load of the task: what it takes. The task has what it is compared with.
  std::vector<double> load_seconds;
  std::vector<PlannedLoad> planned_loads;  // of these, what each device is to hold or sees pass
};

class Options {
 public:
  Options(const PlaceRequest& request, const Prices& prices)
      : request_(request),
        prices_(prices),
        unknown_of_(request.graph.nodes.size(), nullptr),
        warned_(request.graph.nodes.size(), false) {}

  // Of one node, when nodes without a hint may use `candidates`. Not empty. Throws what hints are
  // refused with, naming the node.
  std::vector<NodeOption> of(NodeIndex node, const std::vector<std::uint32_t>& candidates);

  std::uint32_t load_count() const { return std::uint32_t(loads_seen_.size()); }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Homes {
    std::vector<std::uint32_t> devices;
    std::string reason;  // empty: nobody asked
    std::string regret;  // of a preference that cannot be met
  };
  // The calls that infer() reported; of a node that could not say, the models it may call whose
  // hints, or its own, say something: without shapes.
  const std::vector<CallSpec>& calls_of(NodeIndex node);
  const std::vector<CallSpec>* find_unknown(NodeIndex node);
  Homes homes_of(NodeIndex node, const std::vector<std::uint32_t>& candidates);
  NodeOption option(NodeIndex node, std::uint32_t home,
                    const std::vector<std::uint32_t>& candidates, const std::string& reason);
  std::vector<std::shared_ptr<const CallLoad>> loads_of(NodeIndex node, std::size_t call);
  double resident_share(const Model& model, const CallPlacement& placement,
                        const std::vector<std::shared_ptr<const CallLoad>>& loads) const;
  void add_loads(const PlacedCall& placed,
                 const std::vector<std::shared_ptr<const CallLoad>>& loads, const Model& model,
                 NodeOption& option);
  std::uint32_t load_number(const Model& model, const CallPlacement& placement);
  // Places calls that are made in rounds of stages anew, stage by stage over several of the devices
  // that they may use, where that is faster than `calls`, and has room.
  void place_in_stages(NodeIndex node, std::uint32_t home,
                       const std::vector<std::uint32_t>& candidates, Assignment& assignment);
  PlacedCall placed_alone(NodeIndex node, std::size_t call, std::uint32_t device);

  const PlaceRequest& request_;
  const Prices& prices_;
  std::map<std::pair<NodeIndex, std::size_t>,
           std::map<heddle_dtype, std::shared_ptr<const CallLoad>>>
      loads_;
  std::map<std::string, std::uint32_t> loads_seen_;
  // Calls that infer() did not tell, by node; nullptr: not asked for yet. Most nodes call nothing.
  std::vector<const std::vector<CallSpec>*> unknown_of_;
  std::deque<std::vector<CallSpec>> unknown_;
  const std::vector<CallSpec> no_calls_;
  std::vector<std::string> warnings_;
  std::vector<bool> warned_;
};

}  // namespace heddle::engine
