// From a placement of a call to the devices at work that a session uses. Thread-safe.
#pragma once

#include "engine/place/plan.h"
#include "engine/resources/environment.h"
#include "engine/session/session.h"

namespace heddle::engine {

struct Caller {
  const Node& node;
  const Assignment& assignment;  // of the node, in the plan
  std::uint32_t number = 0;      // of the call among those that the node makes
  bool is_stage = false;         // what it gives may stay where it is made
};

// What the plan says of this call, when its shapes were known then; otherwise decided now, by the
// same rules. Throws what place_call() refuses.
SessionDeviceSlots session_device_slots(Environment& environment, const Caller& caller,
                                        const Model& model, const CallSpec& call);

}  // namespace heddle::engine
