// A turn on a model that is loaded, for people who let go of it or pin it. Any thread.
#pragma once

#include <functional>
#include <stop_token>
#include <string_view>

#include "engine/memory/load_turns.h"

namespace heddle {

// How long somebody waits for a turn.
struct Patience {
  std::function<double()> clock;  // monotonic seconds; empty: the system's
  std::stop_token stop = {};      // when this says so it is over
};

// Behind whoever loads the model or pins it now, but waits no longer than 10 s: who asks may stand
// between the load and its end, or have gone. Then throws cancelled, with `name` and `device`.
engine::LoadTurns::Turn take_load_turn(engine::LoadTurns& turns, const engine::Hash128& model,
                                       std::string_view name, std::string_view device,
                                       const Patience& patience);

}  // namespace heddle
