// Keeps a planned session inside the budgets of its places: where the weights find no room beside
// everything else, some of them become pages that are streamed through a ring. Pure.
#pragma once

#include "engine/program/session_plan.h"

namespace heddle::core {

// Fills plan.needs, and what of a plan is about pages. REQUIRES: memory has been laid out. Throws
// out_of_memory for a place whose budget is less than the least.
void page_session(const Graph& graph, const SessionSpec& spec, SessionPlan& plan);

}  // namespace heddle::core
