#include "engine/program/verify_session.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/model.h"

namespace heddle::engine {

namespace {

using StorageKind = SessionStorage::Kind;
using ActionKind = SessionAction::Kind;

// By kind of SessionAction.
constexpr const char* kActions[] = {"the beginning of block ", "the launch of op ",
                                    "the start of transfer ",  "the wait for transfer ",
                                    "the start of page ",      "the wait for page "};

// What can be told of a plan without carrying it out.
class SessionChecker {
 public:
  SessionChecker(const Graph& graph, const SessionSpec& spec, const SessionPlan& plan)
      : graph_(graph), spec_(spec), plan_(plan), phases_(graph.nodes.size(), 0) {}

  SessionFindings run() {
    check_layout();
    check_pages();
    check_blocks();
    check_actions();
    return std::move(found_);
  }

 private:
  template <class... Parts>
  void fault(const Parts&... parts) {
    if (found_.faults.size() < 20) found_.faults.push_back(cat(parts...));
  }
  std::size_t device_slots() const { return spec_.device_slots.size(); }
  static bool is_given(StorageKind kind) {
    return kind == StorageKind::weight || kind == StorageKind::loop_invariant ||
           kind == StorageKind::precomputed;
  }
  std::string block_name(NodeIndex n, std::uint32_t branch) const {
    return cat(graph_.nodes[n].id, " branch ", branch);
  }
  void check_layout() {
    std::vector<std::map<std::uint64_t, std::size_t>> kept(device_slots());
    if (plan_.arenas.size() != device_slots()) fault("there are ", plan_.arenas.size(), " arenas");
    for (std::size_t s = 0; s < plan_.storages.size() && found_.faults.empty(); ++s) {
      const SessionStorage& storage = plan_.storages[s];
      if (storage.device_slot >= device_slots()) {
        fault("storage ", s, " is on a device slot that there is not");
      } else if (!is_given(storage.kind)) {
        const bool scratch = storage.kind == StorageKind::scratch;
        const bool page = storage.kind == StorageKind::page;
        const SessionPlan::Arenas& arenas = plan_.arenas[storage.device_slot];
        const std::uint64_t available = scratch ? arenas.scratch_bytes
                                        : page  ? arenas.staging_ring_bytes
                                                : arenas.persistent_bytes;
        if (storage.offset + storage.bytes > available)
          fault("storage ", s, " ends behind its arena of ", available, " bytes");
        if (!scratch && !page && storage.bytes > 0 &&
            !kept[storage.device_slot].try_emplace(storage.offset, s).second)
          fault("storage ", s, " lies where another one stays");
      }
    }
    for (const auto& by_offset : kept)
      for (auto it = by_offset.begin(); it != by_offset.end(); ++it)
        if (const auto next = std::next(it);
            next != by_offset.end() && it->first + plan_.storages[it->second].bytes > next->first)
          fault("storage ", next->second, " lies in storage ", it->second);
  }

  // Every streamed weight is one page, a budget is kept, and what is told to be copied is what is.
  void check_pages() {
    std::vector<std::uint32_t> pages(plan_.storages.size(), 0);
    for (std::size_t p = 0; p < plan_.pages.size(); ++p) {
      const PlannedPage& page = plan_.pages[p];
      if (page.donor >= std::int32_t(spec_.donors.size()) ||
          (page.donor >= 0 && !spec_.donors[page.donor].copies[page.device_slot].is_there()))
        fault("page ", p, " comes from where there is no way");
      if (page.weight < 0 || std::size_t(page.weight) >= plan_.storages.size())
        return fault("page ", p, " names a storage that there is not");
      const SessionStorage& storage = plan_.storages[page.weight];
      ++pages[page.weight];
      if (storage.kind != StorageKind::page || storage.device_slot != page.device_slot ||
          storage.bytes != page.bytes || page.bytes == 0)
        fault("page ", p, " is not what its storage is");
    }
    for (std::size_t s = 0; s < pages.size(); ++s)
      if (pages[s] != (plan_.storages[s].kind == StorageKind::page ? 1u : 0u))
        fault("storage ", s, " is on ", pages[s], " pages");
    for (std::uint32_t device_slot = 0;
         device_slot < device_slots() && device_slot < plan_.arenas.size(); ++device_slot)
      check_budget(device_slot);
    std::vector<std::uint64_t> lent(spec_.donors.size(), 0);
    for (const PlannedPage& page : plan_.pages)
      if (page.donor >= 0 && std::size_t(page.donor) < lent.size()) lent[page.donor] += page.bytes;
    for (std::size_t d = 0; d < lent.size(); ++d)
      if (lent[d] > spec_.donors[d].available) fault("donor ", d, " lends more than it has");
  }

  void check_budget(std::uint32_t device_slot) {
    if (spec_.device_slots[device_slot].budget == kNoLimit) {
      if (plan_.arenas[device_slot].staging_ring_bytes != 0)
        fault("device slot ", device_slot, " streams without need");
      return;
    }
    const SessionPlan::Arenas& arenas = plan_.arenas[device_slot];
    std::uint64_t held = arenas.persistent_bytes + arenas.scratch_bytes + arenas.staging_ring_bytes;
    for (const SessionStorage& s : plan_.storages)
      if (s.device_slot == device_slot && is_given(s.kind)) held += s.bytes;
    if (held > spec_.device_slots[device_slot].budget)
      fault("device slot ", device_slot, " holds ", held, " bytes of ",
            spec_.device_slots[device_slot].budget);
    std::uint64_t copied = 0, once = 0;
    for (int phase = 0; phase < 3; ++phase)
      for (const SessionAction& action : plan_.phases[phase])
        if (action.kind == ActionKind::page_in && action.index < plan_.pages.size() &&
            plan_.pages[action.index].device_slot == device_slot)
          (phase == 2 ? copied : once) += plan_.pages[action.index].bytes;
    if (copied != plan_.needs[device_slot].step_page_bytes ||
        once != plan_.needs[device_slot].once_page_bytes)
      fault("device slot ", device_slot, " copies other bytes than it tells");
  }

  // How often a node runs: as the fastest of what it reads changes.
  void find_rates() {
    for (const NodeIndex n : graph_.order)
      for (std::uint32_t i = 0; i < graph_.nodes[n].inputs.size(); ++i) {
        const auto* link = std::get_if<Source>(&graph_.nodes[n].inputs[i]);
        if (link == nullptr || (graph_.nodes[n].type->input(i).flags & HEDDLE_PORT_SHAPE) != 0)
          continue;
        phases_[n] = std::max(phases_[n], phase_of_source(*link));
      }
  }
  int phase_of_source(const Source& source) const {
    if (source.node != kGraphInputs) return phases_[source.node];
    switch (graph_.inputs[source.port].flags & HEDDLE_INPUT_PHASE_MASK) {
      case HEDDLE_INPUT_LOOP_INVARIANT:
        return 0;
      case HEDDLE_INPUT_PRECOMPUTED:
        return 1;
      default:
        return 2;
    }
  }

  // The device slots that work on a branch. Its items say which share of the batch it is.
  std::vector<std::uint32_t> group_of_branch(std::uint32_t branch) const {
    const CallPlacement& placement = spec_.placement;
    const SessionBranch& of = plan_.branches[branch];
    std::uint32_t set_shares = 1, item_shares = 1, group = 0;
    if (has(placement.parallel, ParallelMode::data)) {
      item_shares = std::uint32_t(placement.item_fractions.size());
      std::int64_t items = 0;
      for (const SessionBranch& other : plan_.branches)
        if (other.set == of.set) items += other.count;
      const std::vector<std::int64_t> shares = shard_sizes(items, placement.item_fractions);
      std::int64_t begin = 0;
      while (group < shares.size() && (begin != of.begin || shares[group] != of.count))
        begin += shares[group++];
    }
    if (has(placement.parallel, ParallelMode::cfg)) {
      for (const std::uint32_t share : placement.of_set)
        set_shares = std::max(set_shares, share + 1);
      group += placement.of_set[of.set] * item_shares;
    }
    const bool is_group = has(placement.parallel, kOverRanks);
    const std::size_t ranks = is_group ? placement.devices.size() / (set_shares * item_shares) : 1;
    std::vector<std::uint32_t> slots;
    for (std::size_t rank = 0; rank < ranks; ++rank)
      slots.push_back(std::uint32_t(group * ranks + rank));
    return slots;
  }

  void check_blocks() {
    find_rates();
    std::map<std::pair<NodeIndex, std::uint32_t>, std::vector<std::uint32_t>> where;
    for (const SessionPlan::Block& block : plan_.blocks) {
      where[{block.node, block.branch}].push_back(block.device_slot);
      members_.insert({block.node, block.branch, block.device_slot});
    }
    const CallPlacement& placement = spec_.placement;
    const bool in_layers = has(placement.parallel, ParallelMode::layers);
    for (const NodeIndex n : graph_.order)
      for (std::uint32_t branch = 0; branch < plan_.branches.size(); ++branch) {
        const std::vector<std::uint32_t> group = group_of_branch(branch);
        const std::vector<std::uint32_t> wanted{group.at(in_layers ? placement.of_block[n] : 0)};
        const auto found = where.find({n, branch});
        if (found == where.end()) {
          fault("block ", block_name(n, branch), " never runs");
          continue;
        }
        const bool shared = has(placement.parallel, kRanksExchange);
        if (found->second != wanted && !(shared && phases_[n] == 2 && found->second == group))
          fault("block ", block_name(n, branch), " does not run where it was placed");
      }
  }

  void check_actions() {
    const std::size_t counts[] = {plan_.blocks.size(),    plan_.ops.size(),
                                  plan_.transfers.size(), plan_.transfers.size(),
                                  plan_.pages.size(),     plan_.pages.size()};
    std::vector<std::uint32_t> ahead;
    std::vector<std::vector<int>> phase_of;
    for (const std::size_t count : counts) phase_of.emplace_back(count, -1);
    for (int phase = 0; phase < 3; ++phase) {
      std::set<std::tuple<NodeIndex, std::uint32_t, std::uint32_t>> begun;
      for (const SessionAction& action : plan_.phases[phase]) {
        const auto kind = std::size_t(action.kind);
        if (action.index >= counts[kind]) {
          fault("an action names what there is not");
          continue;
        }
        int& seen = phase_of[kind][action.index];
        if (seen >= 0) fault(kActions[kind], action.index, " comes twice");
        seen = phase;
        if (action.kind == ActionKind::block) {
          const SessionPlan::Block& block = plan_.blocks[action.index];
          begun.insert({block.node, block.branch, block.device_slot});
          if (phases_[block.node] != phase)
            fault("block ", block_name(block.node, block.branch), " runs in phase ", phase);
        } else if (action.kind == ActionKind::launch) {
          const PlannedOp& op = plan_.ops[action.index];
          if (!begun.contains({op.node, op.branch, op.device_slot}))
            fault("an op of ", block_name(op.node, op.branch), " stands outside of its block");
        } else if (action.kind == ActionKind::transfer) {
          if (phase_of_source(plan_.transfers[action.index].value) != phase)
            fault("transfer ", action.index, " is in another phase than its value");
        } else if (action.kind == ActionKind::page_in) {
          if (action.for_next_step) ahead.push_back(action.index);
          if (action.for_next_step && phase != 2)
            fault("page-in ", action.index, " is for no step");
        } else if (action.kind == ActionKind::await_page) {
          if (phase_of[std::size_t(ActionKind::page_in)][action.index] < 0 &&
              std::ranges::find(plan_.first_pages, action.index) == plan_.first_pages.end())
            fault("page ", action.index, " is awaited where it was not started");
        } else if (phase_of[std::size_t(ActionKind::transfer)][action.index] != phase) {
          fault("transfer ", action.index, " is awaited where it was not started");
        }
      }
    }
    std::ranges::stable_sort(ahead, {},
                             [&](std::uint32_t p) { return plan_.pages[p].device_slot; });
    if (ahead != plan_.first_pages) fault("the first pages are not those that steps bring ahead");
    for (std::size_t kind = 0; kind < phase_of.size(); ++kind)
      for (std::size_t i = 0; i < phase_of[kind].size(); ++i)
        if (phase_of[kind][i] < 0) fault(kActions[kind], i, " is missing");
  }

  const Graph& graph_;
  const SessionSpec& spec_;
  const SessionPlan& plan_;
  SessionFindings found_;
  std::vector<int> phases_;  // by node: the phase it belongs to
  std::set<std::tuple<NodeIndex, std::uint32_t, std::uint32_t>> members_;  // of blocks
};

}  // namespace

SessionFindings check_session(const Graph& graph, const SessionSpec& spec,
                              const SessionPlan& plan) {
  SessionFindings found = SessionChecker(graph, spec, plan).run();
  // What follows goes by the numbers in the plan.
  if (found.faults.empty()) found = simulate_session(graph, spec, plan);
  return found;
}

namespace {

// How many runs of bytes the ops of a step touch: what carrying them out takes, each a search in
// the memory's map. Counted as far as the limit.
bool has_more_runs(const SessionPlan& plan, std::uint64_t limit) {
  std::uint64_t runs = 0;
  const auto count = [&](const std::vector<Operand>& operands) {
    for (const Operand& operand : operands) {
      std::uint64_t rows = 1;
      for (std::uint32_t i = 0; i + 1 < operand.info.rank; ++i)
        rows *= std::uint64_t(std::max<std::int64_t>(operand.info.shape[i], 1));
      runs += is_contiguous(operand.info) ? 1 : rows;
    }
  };
  for (const PlannedOp& op : plan.ops) {
    count(op.op.in);
    count(op.op.out);
    if (runs > limit) return true;
  }
  return false;
}

}  // namespace

void verify_session(const Graph& graph, const SessionSpec& spec, const SessionPlan& plan) {
  constexpr std::uint64_t kMostRuns = 20'000;
  const SessionFindings found = has_more_runs(plan, kMostRuns)
                                    ? SessionChecker(graph, spec, plan).run()
                                    : check_session(graph, spec, plan);
  if (!found.faults.empty())
    throw Error(Code::internal, cat("the plan of a model's call is wrong: ", found.faults.front(),
                                    ". This is an error in heddle: please report it"));
}

}  // namespace heddle::engine
