// Keeps a planned session inside the budgets of its device slots: where the weights find no room
// beside everything else, some of them become pages that are streamed through a staging ring. Pure.
#pragma once

#include "engine/program/session_plan.h"

namespace heddle::engine {

// Fills plan.needs, and what of a plan is about pages. REQUIRES: memory has been laid out. Throws
// out_of_memory for a device slot whose budget is less than the least.
void page_session(const Graph& graph, const SessionSpec& spec, SessionPlan& plan);

}  // namespace heddle::engine
