#include "tests/plan_check/session_check.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "engine/base/text.h"
#include "heddle/abi/model.h"

namespace heddle::test {

namespace {

using core::cat;
using core::PlannedOp;
using core::SessionAction;
using core::SessionPlan;
using core::SessionStorage;
using core::Split;
using StorageKind = core::SessionStorage::Kind;
using ActionKind = core::SessionAction::Kind;

// What can be told of a plan without carrying it out.
class Checker {
 public:
  Checker(const core::Graph& graph, const core::SessionSpec& spec, const SessionPlan& plan)
      : graph_(graph), spec_(spec), plan_(plan), rates_(graph.nodes.size(), 0) {}

  SessionFindings run() {
    check_layout();
    check_blocks();
    check_actions();
    return std::move(found_);
  }

 private:
  template <class... Parts>
  void fault(const Parts&... parts) {
    if (found_.faults.size() < 20) found_.faults.push_back(cat(parts...));
  }
  std::size_t places() const { return spec_.places.size(); }
  static bool is_given(StorageKind kind) {
    return kind == StorageKind::weight || kind == StorageKind::constant ||
           kind == StorageKind::schedule;
  }
  std::string block_name(core::NodeIndex n, std::uint32_t lane) const {
    return cat(graph_.nodes[n].id, " lane ", lane);
  }
  void check_layout() {
    std::vector<std::map<std::uint64_t, std::size_t>> kept(places());
    if (plan_.arenas.size() != places()) fault("there are ", plan_.arenas.size(), " arenas");
    for (std::size_t s = 0; s < plan_.storages.size() && found_.faults.empty(); ++s) {
      const SessionStorage& storage = plan_.storages[s];
      if (storage.place >= places()) {
        fault("storage ", s, " is on a place that there is not");
      } else if (!is_given(storage.kind)) {
        const bool scratch = storage.kind == StorageKind::scratch;
        const std::uint64_t room = scratch ? plan_.arenas[storage.place].scratch_bytes
                                           : plan_.arenas[storage.place].persistent_bytes;
        if (storage.offset + storage.bytes > room)
          fault("storage ", s, " ends behind its arena of ", room, " bytes");
        if (!scratch && storage.bytes > 0 &&
            !kept[storage.place].try_emplace(storage.offset, s).second)
          fault("storage ", s, " lies where another one stays");
      }
    }
    for (const auto& by_offset : kept)
      for (auto it = by_offset.begin(); it != by_offset.end(); ++it)
        if (const auto next = std::next(it);
            next != by_offset.end() && it->first + plan_.storages[it->second].bytes > next->first)
          fault("storage ", next->second, " lies in storage ", it->second);
  }

  // How often a node runs: as the fastest of what it reads changes.
  void find_rates() {
    for (const core::NodeIndex n : graph_.order)
      for (std::uint32_t i = 0; i < graph_.nodes[n].inputs.size(); ++i) {
        const auto* link = std::get_if<core::Source>(&graph_.nodes[n].inputs[i]);
        if (link == nullptr || (graph_.nodes[n].type->input(i).flags & HEDDLE_PORT_SHAPE) != 0)
          continue;
        rates_[n] = std::max(rates_[n], rate_of(*link));
      }
  }
  int rate_of(const core::Source& source) const {
    if (source.node != core::kGraphInputs) return rates_[source.node];
    switch (graph_.inputs[source.port].flags & HEDDLE_INPUT_RATE_MASK) {
      case HEDDLE_INPUT_CONSTANT:
        return 0;
      case HEDDLE_INPUT_SCHEDULED:
        return 1;
      default:
        return 2;
    }
  }

  void check_blocks() {
    find_rates();
    std::map<std::pair<core::NodeIndex, std::uint32_t>, std::vector<std::uint32_t>> where;
    for (const SessionPlan::Block& block : plan_.blocks) {
      where[{block.node, block.lane}].push_back(block.place);
      members_.insert({block.node, block.lane, block.place});
    }
    const core::CallPlacement& placement = spec_.placement;
    std::vector<std::uint32_t> all;
    for (std::uint32_t p = 0; p < placement.devices.size(); ++p) all.push_back(p);
    for (const core::NodeIndex n : graph_.order)
      for (std::uint32_t lane = 0; lane < plan_.lanes.size(); ++lane) {
        std::vector<std::uint32_t> wanted{0};
        if (placement.split == Split::layers) wanted = {placement.of_block[n]};
        if (placement.split == Split::sets) wanted = {placement.of_set[plan_.lanes[lane].set]};
        if (placement.split == Split::batch) wanted = {plan_.lanes[lane].place};
        const auto found = where.find({n, lane});
        if (found == where.end()) {
          fault("block ", block_name(n, lane), " never runs");
          continue;
        }
        const bool shared = placement.split == Split::sequence || placement.split == Split::rows;
        if (found->second != wanted && !(shared && rates_[n] == 2 && found->second == all))
          fault("block ", block_name(n, lane), " does not run where it was placed");
      }
  }

  void check_actions() {
    const std::size_t counts[] = {plan_.blocks.size(), plan_.ops.size(), plan_.transfers.size(),
                                  plan_.transfers.size()};
    std::vector<std::vector<int>> phase_of;
    for (const std::size_t count : counts) phase_of.emplace_back(count, -1);
    for (int phase = 0; phase < 3; ++phase) {
      std::set<std::tuple<core::NodeIndex, std::uint32_t, std::uint32_t>> begun;
      for (const SessionAction& action : plan_.phases[phase]) {
        const auto kind = std::size_t(action.kind);
        if (action.index >= counts[kind]) {
          fault("an action names what there is not");
          continue;
        }
        int& seen = phase_of[kind][action.index];
        if (seen >= 0) fault("action ", kind, " of ", action.index, " comes twice");
        seen = phase;
        if (action.kind == ActionKind::block) {
          const SessionPlan::Block& block = plan_.blocks[action.index];
          begun.insert({block.node, block.lane, block.place});
          if (rates_[block.node] != phase)
            fault("block ", block_name(block.node, block.lane), " runs in phase ", phase);
        } else if (action.kind == ActionKind::launch) {
          const PlannedOp& op = plan_.ops[action.index];
          if (!begun.contains({op.node, op.lane, op.place}))
            fault("an op of ", block_name(op.node, op.lane), " stands outside of its block");
        } else if (action.kind == ActionKind::transfer) {
          if (rate_of(plan_.transfers[action.index].value) != phase)
            fault("transfer ", action.index, " is in another phase than its value");
        } else if (phase_of[std::size_t(ActionKind::transfer)][action.index] != phase) {
          fault("transfer ", action.index, " is awaited where it was not started");
        }
      }
    }
    for (std::size_t kind = 0; kind < phase_of.size(); ++kind)
      for (std::size_t i = 0; i < phase_of[kind].size(); ++i)
        if (phase_of[kind][i] < 0) fault("action ", kind, " of ", i, " is missing");
  }

  const core::Graph& graph_;
  const core::SessionSpec& spec_;
  const SessionPlan& plan_;
  SessionFindings found_;
  std::vector<int> rates_;  // by node: the phase it belongs to
  std::set<std::tuple<core::NodeIndex, std::uint32_t, std::uint32_t>> members_;  // of blocks
};

}  // namespace

SessionFindings check_session(const core::Graph& graph, const core::SessionSpec& spec,
                              const SessionPlan& plan) {
  SessionFindings found = Checker(graph, spec, plan).run();
  // What follows goes by the numbers in the plan.
  if (found.faults.empty()) found = simulate_session(graph, spec, plan);
  if (found.faults.empty()) found.faults = step_faults(graph, spec, plan);
  return found;
}

}  // namespace heddle::test
