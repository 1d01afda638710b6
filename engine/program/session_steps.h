// A planned session at the grain of blocks: what `plan` prints, and what a check of plans reads. Pure.
#pragma once

#include <vector>

#include "engine/program/session_plan.h"

namespace heddle::core {

// What a block reads: the value, the storage it is read from, and the transfer that brought it (-1: made here).
struct BlockRead {
  Source source;
  std::int32_t storage = -1, transfer = -1;
};
using BlockReads = std::vector<BlockRead>;

// Fills plan.steps. `reads` by block.
void list_session_steps(const Graph& graph, const std::vector<BlockReads>& reads, const SessionSpec& spec, SessionPlan& plan);

}  // namespace heddle::core
