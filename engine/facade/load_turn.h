// A turn on a model that is loaded, for people who let go of it or pin it. Any thread.
#pragma once

#include <functional>
#include <string_view>

#include "engine/memory/load_turns.h"

namespace heddle {

// Behind whoever loads the model or pins it now, but waits no longer than 10 s, of `clock`
// (monotonic seconds; empty: the system's): who asks may stand between the load and its end, or
// have gone. Then throws cancelled, with `name` and `device`.
engine::LoadTurns::Turn take_load_turn(engine::LoadTurns& turns, const engine::Hash128& model,
                                       std::string_view name, std::string_view device,
                                       const std::function<double()>& clock);

}  // namespace heddle
