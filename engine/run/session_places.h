// From a placement of a call to the devices at work that a session uses. Thread-safe.
#pragma once

#include "engine/run/environment.h"
#include "engine/run/session.h"

namespace heddle::core {

SessionPlaces session_places(Environment& environment, const Node& caller, const RunDevice& home, const Model& model, const CallSpec& call);

}  // namespace heddle::core
