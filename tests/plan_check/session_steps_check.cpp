// What a plan tells of itself at the grain of blocks, beside what it does.
#include <algorithm>
#include <set>
#include <tuple>

#include "engine/base/text.h"
#include "tests/plan_check/session_check.h"

namespace heddle::test {

namespace {

using core::cat;
using core::NodeIndex;
using core::PlannedTransfer;
using core::SessionAction;
using core::SessionPlan;
using core::Source;
using core::Step;

class StepChecker {
 public:
  StepChecker(const core::Graph& graph, const core::SessionSpec& spec, const SessionPlan& plan,
              int phase)
      : graph_(graph),
        spec_(spec),
        plan_(plan),
        phase_(phase),
        steps_(plan.steps[std::size_t(phase)]) {}

  std::vector<std::string> run() {
    find_closures();
    if (!faults_.empty()) return faults_;
    check_runs();
    check_transfers();
    for (std::uint32_t i = 0; i < steps_.size(); ++i) {
      if (steps_[i].kind == Step::Kind::run) check_reads(i);
      if (steps_[i].kind == Step::Kind::transfer) check_sender(i);
    }
    return faults_;
  }

 private:
  template <class... Parts>
  void fault(const Parts&... parts) {
    faults_.push_back(cat("phase ", phase_, ", ", parts...));
  }

  void find_closures() {
    before_.resize(steps_.size());
    for (std::uint32_t i = 0; i < steps_.size(); ++i)
      for (const std::uint32_t a : steps_[i].after) {
        if (a >= i) {
          fault("step ", i, " waits for step ", a, ", which does not come before it");
          continue;
        }
        before_[i].insert(a);
        before_[i].insert(before_[a].begin(), before_[a].end());
      }
  }

  void check_runs() {
    std::vector<std::tuple<NodeIndex, std::uint32_t, std::uint32_t>> told, done;
    for (std::uint32_t i = 0; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      if (step.kind != Step::Kind::run) continue;
      told.emplace_back(step.node, step.set, step.to);
      runs_[{step.node, step.set}].push_back(i);
    }
    for (const SessionAction& action : plan_.phases[std::size_t(phase_)])
      if (action.kind == SessionAction::Kind::block) {
        const SessionPlan::Block& block = plan_.blocks[action.index];
        done.emplace_back(block.node, block.lane, block.place);
      }
    if (told != done) fault("the runs that are told are not those that are done");
  }

  // Those that the plan starts, and in the first phase what is brought before anything runs.
  void check_transfers() {
    using Sent = std::tuple<Source, std::uint32_t, std::uint32_t, std::uint32_t, std::uint64_t>;
    std::multiset<Sent> told, done;
    for (const Step& step : steps_)
      if (step.kind == Step::Kind::transfer)
        told.insert({{step.node, step.port}, step.set, step.from, step.to, step.bytes});
    for (const SessionAction& action : plan_.phases[std::size_t(phase_)])
      if (action.kind == SessionAction::Kind::transfer) {
        const PlannedTransfer& t = plan_.transfers[action.index];
        done.insert({t.value, t.lane, t.from, t.to, t.bytes});
      }
    for (const core::SessionStorage& s : plan_.storages) {
      const bool brought = s.kind == core::SessionStorage::Kind::constant ||
                           s.kind == core::SessionStorage::Kind::schedule;
      if (phase_ != 0 || !brought || s.place == spec_.home) continue;
      std::uint32_t input = 0;
      while (graph_.inputs[input].name != s.input) ++input;
      const bool shared = spec_.places[s.place].memory == spec_.places[spec_.home].memory;
      done.insert({{core::kGraphInputs, input}, s.lane, spec_.home, s.place, shared ? 0 : s.bytes});
    }
    if (told != done) fault("the transfers that are told are not those that are done");
  }

  const std::vector<std::uint32_t>* runs_of(NodeIndex n, std::uint32_t lane) const {
    const auto found = runs_.find({n, lane});
    return found == runs_.end() ? nullptr : &found->second;
  }
  bool waits_for(std::uint32_t step, std::uint32_t run) const {
    return before_[step].contains(run);
  }

  // A block waits for whoever makes what it reads in this phase: of a divided maker for the member
  // beside it, and for all of them where it reads alone what they have made together.
  void check_reads(std::uint32_t index) {
    const Step& step = steps_[index];
    const core::Node& node = graph_.nodes[step.node];
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
      const auto* link = std::get_if<Source>(&node.inputs[i]);
      if (link == nullptr || (node.type->input(i).flags & HEDDLE_PORT_SHAPE) != 0) continue;
      const auto* makers = runs_of(link->node, step.set);
      if (makers == nullptr) continue;
      const bool divided = makers->size() > 1;
      const bool alone = runs_of(step.node, step.set)->size() == 1;
      for (const std::uint32_t maker : *makers)
        if (!waits_for(index, maker) &&
            (!divided || steps_[maker].to == step.to || (alone && is_divided_by_tokens(*link))))
          fault("step ", index, " (", node.id, ") does not wait for step ", maker, " (",
                graph_.nodes[link->node].id, ")");
    }
  }
  bool is_divided_by_tokens(const Source& source) const {
    return spec_.placement.parallel == core::ParallelMode::sequence &&
           (graph_.nodes[source.node].type->output(source.port).flags & HEDDLE_PORT_SEQUENCE) != 0;
  }

  void check_sender(std::uint32_t index) {
    const Step& step = steps_[index];
    if (step.node == core::kGraphInputs) return;
    const auto* makers = runs_of(step.node, step.set);
    if (makers == nullptr) return;
    for (const std::uint32_t maker : *makers)
      if (!waits_for(index, maker) && (makers->size() == 1 || steps_[maker].to == step.from))
        fault("step ", index, " sends before step ", maker, " is done");
  }

  const core::Graph& graph_;
  const core::SessionSpec& spec_;
  const SessionPlan& plan_;
  const int phase_;
  const std::vector<Step>& steps_;
  std::vector<std::string> faults_;
  std::vector<std::set<std::uint32_t>> before_;  // by step
  std::map<std::pair<NodeIndex, std::uint32_t>, std::vector<std::uint32_t>> runs_;
};

}  // namespace

std::vector<std::string> step_faults(const core::Graph& graph, const core::SessionSpec& spec,
                                     const SessionPlan& plan) {
  std::vector<std::string> faults;
  for (int phase = 0; phase < 3; ++phase)
    for (std::string& fault : StepChecker(graph, spec, plan, phase).run())
      faults.push_back(std::move(fault));
  return faults;
}

}  // namespace heddle::test
