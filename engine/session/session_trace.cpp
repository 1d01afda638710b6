#include "engine/session/session_trace.h"

#include <algorithm>
#include <utility>

#include "engine/base/text.h"

namespace heddle::engine {

namespace {

bool launches(const SessionPlan& plan, Phase phase) {
  return std::ranges::any_of(plan.phases[int(phase)], [](const SessionAction& action) {
    return action.kind == SessionAction::Kind::launch;
  });
}

}  // namespace

bool shows_blocks(const SessionContext& context) {
  return context.timeline != nullptr && context.timeline->has_blocks();
}

void BlockTrace::before_launch() {
  if (!shows_blocks(view_.context) || begin_) return;
  begin_.emplace(state().device());
  state().record(*begin_);
}

void BlockTrace::end() {
  if (!begin_) return;
  const SessionPlan::Block& block = view_.plan.blocks[block_];
  Event end(state().device());
  state().record(end);
  const std::string& id = view_.graph().nodes[block.node].id;
  view_.context.timeline->add(
      state(), StreamRow::compute, "block",
      view_.plan.branches.size() == 1 ? id : cat(id, " branch ", block.branch), std::move(*begin_),
      std::move(end), 0);
  begin_.reset();
}

StepTrace::StepTrace(const SessionView& view, std::initializer_list<Phase> phases) : view_(view) {
  if (view.context.timeline == nullptr || shows_blocks(view.context)) return;
  const bool has_steps = launches(view.plan, Phase::per_step),
             are_steps = std::ranges::find(phases, Phase::per_step) != phases.end();
  if (has_steps != are_steps) return;
  for (const SessionPlan::Block& block : view.plan.blocks) begins_.try_emplace(block.device_slot);
  for (auto& [device_slot, begin] : begins_) {
    begin.emplace(view.state(device_slot).device());
    view.state(device_slot).record(*begin);
  }
}

void StepTrace::end() {
  for (auto& [device_slot, begin] : begins_) {
    DeviceState& state = view_.state(device_slot);
    Event end(state.device());
    state.record(end);
    view_.context.timeline->add(state, StreamRow::compute, "step", "step", std::move(*begin),
                                std::move(end), 0);
  }
}

}  // namespace heddle::engine
