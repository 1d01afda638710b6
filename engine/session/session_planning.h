// From a call and the devices at work to the plan of its session: with their kernels, and with
// weights as they lay them out.
#pragma once

#include "engine/program/infer.h"
#include "engine/session/session_view.h"

namespace heddle::engine {

// Adds what is spare to the budgets where nothing else helps. Throws what plan_session() throws;
// out_of_memory with who holds what on the devices that have a budget.
SessionPlan plan_at(SessionDeviceSlots& device_slots, const CallSpec& call);

}  // namespace heddle::engine
