// Holds a planned session of a model against the rules that any such plan has to keep, without a
// line of the planner's: its actions are carried out on memory that knows who touched it last.
//   every block runs where its call was placed, as often as what it reads changes; a block that is
//     divided has one trace for each rank of the group
//   whatever an op or a copy reads was written before, by a moment that its device has waited for,
//     and is still there; nothing is overwritten that somebody may still be reading
//   devices know of each other through awaited transfers alone, and where a step ends
//   the same bytes are sent to the same place once, and in the phase that made them; every transfer
//     is started and awaited once
//   streamed weights come in once a step, and no budget is exceeded
//   storages lie inside their arenas, operands inside their storages
// Three steps are carried out, so that each meets what another one left and the last one leaves
// nothing. Pure; takes many times as long as making the plan.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/program/session_plan.h"

namespace heddle::engine {

struct SessionFindings {
  std::vector<std::string> faults;  // a line each; empty: the plan is right
  // By set and name, of calls that are not divided by items: a number for how the last step's
  // output is computed. Plans of equal calls have equal numbers, and so have groups whose ranks
  // exchange, where equally many do, and reach each other's memory in the same way.
  std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> outputs;
};

SessionFindings check_session(const Graph& graph, const SessionSpec& spec, const SessionPlan& plan);

// Its second part, for plans whose numbers name what there is: what shows when it is carried out.
SessionFindings simulate_session(const Graph& graph, const SessionSpec& spec,
                                 const SessionPlan& plan);

// Throws an internal error with the first fault. Behind the planner, in debug and sanitizer builds:
// a session whose ops touch more than 20,000 runs of bytes, which would take longer than a test
// may, is held to the rules that show without carrying it out.
void verify_session(const Graph& graph, const SessionSpec& spec, const SessionPlan& plan);

}  // namespace heddle::engine
