// The captured graphs of a session's step: segments of launches on one device slot between which
// that device slot neither sends nor waits for anything, kept by their device and enqueued with one
// call each, at the first launch. What a segment does is what its launches do, on their addresses
// and in their order, or by lanes in one that gives the same bytes (concurrent_ops.h); one that its
// device cannot keep stays launches. For one thread at a time; replays have to be done before it
// goes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "engine/device/device.h"
#include "engine/memory/reservation.h"
#include "engine/program/session_plan.h"

namespace heddle::engine {

class SessionGraphs {
 public:
  // What a segment may hold: block, launches of one block, so that blocks can be told apart in a
  // timeline; step, all that lies together.
  enum class Grain { block, step };

  struct Segment {
    std::uint32_t device_slot = 0;
    TakenBytes taken;  // of its device slot's ledger; goes back after the graph
    std::unique_ptr<CapturedGraph> captured_graph;
  };

  // Captures what `plan` has of such segments. launch(op, stream) enqueues an op of the plan on a
  // stream of its device slot; what it throws comes out, but for what says that it cannot be kept
  // or that memory is short. Nothing of it runs.
  // take(device slot, bytes) takes what a graph needs; what it has no room for is given up.
  using Launch = std::function<void(std::uint32_t op, Stream& stream)>;
  using Take = std::function<TakenBytes(std::uint32_t device_slot, std::uint64_t bytes)>;
  SessionGraphs(const SessionPlan& plan, std::span<const Device* const> device_slots, Grain grain,
                const Launch& launch, const Take& take);

  // The segment whose first launch is this action of the step; nullptr: none begins there.
  const Segment* at(std::uint32_t action) const {
    const auto found = segments_.find(action);
    return found == segments_.end() ? nullptr : &found->second;
  }
  // Whether this action is a launch of a segment.
  bool holds(std::uint32_t action) const { return held_[action]; }
  std::size_t count() const { return segments_.size(); }

 private:
  std::map<std::uint32_t, Segment> segments_;  // by first launch
  std::vector<bool> held_;                     // by action
};

}  // namespace heddle::engine
