// A block as it is traced on one device slot: alone there, or for one of a group that divides it.
// For plan_session() alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/program/tracer.h"

namespace heddle::engine {

struct PlacedBlock {
  std::uint32_t device_slot = 0;
  BlockSpec block;
  std::vector<std::optional<Operand>> inputs;  // by input of the node; in the plan
  BlockProgram program;
  std::vector<Operand> base;  // of each of the program's storages: where it is in the plan

  // An operand of the program, in the plan.
  Operand in_plan(const Operand& local) const;
  // The input that an operand of the plan is, from its first element to its last; nullptr when it
  // is none.
  const Source* input_that_is(const Operand& operand) const;
};

}  // namespace heddle::engine
