#include "engine/program/session_steps.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace heddle::core {

namespace {

class Lister {
 public:
  Lister(const Graph& graph, const std::vector<BlockReads>& reads, const SessionSpec& spec, SessionPlan& plan)
      : graph_(graph), reads_(reads), spec_(spec), plan_(plan) { find_last_reads(); }

  void list(int phase) {
    made_.clear();
    arrived_.clear();
    transfers_.clear();
    steps_ = &plan_.steps[phase];
    if (phase == 0) list_externals();
    for (const SessionAction& action : plan_.phases[phase]) {
      if (action.kind == SessionAction::Kind::block) list_block(action.index);
      else if (action.kind == SessionAction::Kind::transfer) list_transfer(action.index);
    }
  }

 private:
  // Constants and schedules, brought to the places that read them before anything runs.
  void list_externals() {
    for (const SessionStorage& s : plan_.storages) {
      if (s.kind != SessionStorage::Kind::constant && s.kind != SessionStorage::Kind::schedule) continue;
      const auto input = std::ranges::find(graph_.inputs, s.input, &GraphInput::name);
      if (s.place == spec_.home) continue;
      const bool shared = spec_.places[s.place].memory == spec_.places[spec_.home].memory;
      steps_->push_back({Step::Kind::transfer, kGraphInputs, std::uint32_t(input - graph_.inputs.begin()), s.lane, spec_.home, s.place, shared ? 0 : s.bytes, {}});
    }
  }

  void list_block(std::uint32_t index) {
    const SessionPlan::Block& block = plan_.blocks[index];
    Step run{Step::Kind::run, block.node, 0, block.lane, block.place, block.place, 0, {}};
    std::vector<BlockRead> over;  // values whose last reader this is
    for (const BlockRead& read : reads_[index]) {
      add_makers(read.source, block.lane, block.place, run.after);
      if (const auto at = transfers_.find(read.transfer); at != transfers_.end()) run.after.push_back(at->second);
      const auto last = last_read_.find(read.storage);
      if (last != last_read_.end() && last->second == index) over.push_back(read);
    }
    std::ranges::sort(run.after);
    run.after.erase(std::unique(run.after.begin(), run.after.end()), run.after.end());
    for (const std::int32_t storage : results_[index]) run.bytes += plan_.storages[storage].bytes;
    const auto id = std::uint32_t(steps_->size());
    steps_->push_back(std::move(run));
    made_[{block.node, block.lane}].emplace_back(block.place, id);
    std::set<std::int32_t> released;
    for (const BlockRead& read : over)
      if (plan_.storages[read.storage].kind == SessionStorage::Kind::scratch && released.insert(read.storage).second)
        steps_->push_back({Step::Kind::release, read.source.node, read.source.port, block.lane, block.place, block.place, plan_.storages[read.storage].bytes, {id}});
  }

  void list_transfer(std::uint32_t index) {
    const PlannedTransfer& t = plan_.transfers[index];
    Step step{Step::Kind::transfer, t.value.node, t.value.port, t.lane, t.from, t.to, t.bytes, {}};
    add_makers(t.value, t.lane, t.from, step.after);
    arrived_[{t.value, t.lane, t.to}].push_back(std::uint32_t(steps_->size()));
    transfers_[std::int32_t(index)] = std::uint32_t(steps_->size());
    steps_->push_back(std::move(step));
  }

  // The steps of this phase after which a value is on a place: runs of its maker there and transfers to there. A divided maker has
  // run on every place of its group; what is put together of their parts comes from all of them.
  void add_makers(const Source& value, std::uint32_t lane, std::uint32_t place, std::vector<std::uint32_t>& after) const {
    const std::size_t none = after.size();
    const auto runs = made_.find({value.node, lane});
    if (runs != made_.end())
      for (const auto& [where, step] : runs->second)
        if (where == place) after.push_back(step);
    if (const auto at = arrived_.find({value, lane, place}); at != arrived_.end()) after.insert(after.end(), at->second.begin(), at->second.end());
    if (after.size() > none || runs == made_.end()) return;
    for (const auto& [where, step] : runs->second) after.push_back(step);  // handed on in memory that the places share
  }

  // A block's results are the storages that others read and that it was the first to touch.
  void find_last_reads() {
    std::map<std::pair<NodeIndex, std::uint32_t>, std::uint32_t> maker;
    results_.resize(plan_.blocks.size());
    std::set<std::int32_t> counted;
    for (std::uint32_t b = 0; b < plan_.blocks.size(); ++b) {
      maker[{plan_.blocks[b].node, plan_.blocks[b].lane}] = b;
      for (const BlockRead& read : reads_[b]) {
        last_read_[read.storage] = b;
        const auto made = maker.find({read.source.node, plan_.blocks[b].lane});
        if (read.transfer < 0 && made != maker.end() && counted.insert(read.storage).second) results_[made->second].push_back(read.storage);
      }
    }
    for (const SessionPlan::Output& output : plan_.outputs) last_read_.erase(output.value.storage);
  }

  const Graph& graph_;
  const std::vector<BlockReads>& reads_;
  const SessionSpec& spec_;
  SessionPlan& plan_;
  std::vector<Step>* steps_ = nullptr;
  std::map<std::int32_t, std::uint32_t> last_read_;  // storage: block
  std::vector<std::vector<std::int32_t>> results_;   // by block: storages
  std::map<std::pair<NodeIndex, std::uint32_t>, std::vector<std::pair<std::uint32_t, std::uint32_t>>> made_;  // in this phase: block and lane; places, steps
  std::map<std::tuple<Source, std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> arrived_;            // in this phase: value, lane and place; steps
  std::map<std::int32_t, std::uint32_t> transfers_;                                                           // in this phase: transfer, step
};

}  // namespace

void list_session_steps(const Graph& graph, const std::vector<BlockReads>& reads, const SessionSpec& spec, SessionPlan& plan) {
  Lister lister(graph, reads, spec, plan);
  for (int phase = 0; phase < 3; ++phase) lister.list(phase);
}

}  // namespace heddle::core
