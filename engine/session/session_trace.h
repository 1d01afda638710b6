// What the timeline of a run shows of a session at work: blocks, or whole steps. Used by the
// session's thread; costs nothing where there is no timeline.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>

#include "engine/session/session_view.h"

namespace heddle::engine {

// Whether every block is to be seen, so that blocks are launched one by one.
bool shows_blocks(const SessionContext& context);

// Files the launches of one block after another in the timeline, if there is one: a span begins at
// a block's first launch and ends before whatever is no launch, so that waiting for transfers is no
// part of it.
class BlockTrace {
 public:
  explicit BlockTrace(const SessionView& view) : view_(view) {}

  void block(std::uint32_t index) { block_ = index; }
  void before_launch();
  void end();

 private:
  DeviceState& state() const { return view_.state(view_.plan.blocks[block_].device_slot); }

  const SessionView& view_;
  std::uint32_t block_ = 0;
  std::optional<Event> begin_;
};

// Files a whole step in a timeline that shows no blocks: on each device that computes some, from
// what it enqueues first to what it enqueues last. A step is what `phases` enqueue, where they are
// those that steps are priced by: what depends on the step, or, in a model of which nothing does
// (an autoencoder), all of it.
class StepTrace {
 public:
  StepTrace(const SessionView& view, std::initializer_list<Phase> phases);
  void end();

 private:
  const SessionView& view_;
  std::map<std::uint32_t, std::optional<Event>> begins_;  // by device slot
};

}  // namespace heddle::engine
