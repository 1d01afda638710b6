// The recordings of a session's step: stretches of launches on one place between which that place
// neither sends nor waits for anything, kept by their device and enqueued with one call each, at
// the first launch. What a stretch does is what its launches do, in their order and on their
// addresses; one that its device cannot keep stays launches. For one thread at a time; replays have
// to be done before it goes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "engine/device/device.h"
#include "engine/program/session_plan.h"

namespace heddle::core {

class SessionRecordings {
 public:
  // What a stretch may hold: block, launches of one block, so that blocks can be told apart in a
  // timeline; step, all that lies together.
  enum class Grain { block, step };

  struct Stretch {
    std::uint32_t place = 0;
    std::unique_ptr<Recording> recording;
  };

  // Records what `plan` has of such stretches. launch(op, stream) enqueues an op of the plan on a
  // stream of its place; what it throws comes out, but for what says that it cannot be kept or
  // that memory is short. Nothing of it runs.
  using Launch = std::function<void(std::uint32_t op, Stream& stream)>;
  SessionRecordings(const SessionPlan& plan, std::span<const Device* const> places, Grain grain,
                    const Launch& launch);

  // The stretch whose first launch is this action of the step; nullptr: none begins there.
  const Stretch* at(std::uint32_t action) const {
    const auto found = stretches_.find(action);
    return found == stretches_.end() ? nullptr : &found->second;
  }
  // Whether this action is a launch of a stretch.
  bool holds(std::uint32_t action) const { return held_[action]; }
  std::size_t count() const { return stretches_.size(); }

 private:
  std::map<std::uint32_t, Stretch> stretches_;  // by first launch
  std::vector<bool> held_;                      // by action
};

}  // namespace heddle::core
