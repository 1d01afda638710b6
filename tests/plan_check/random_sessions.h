// Random models of blocks that are plain C++ functions, and random calls of them, placed in every
// way that there is. For plans, not for runs.
#pragma once

#include <random>
#include <string>

#include "engine/program/session_plan.h"

namespace heddle::test {

struct SessionQuestion {
  engine::Graph graph;
  engine::SessionSpec spec;
  std::string describe() const;
};

// Every block reads tensors (batch, tokens, 256) and makes some: by sums, products with matrices,
// views with gaps, in place, by handing on what it reads, by collectives where it is divided.
SessionQuestion random_session(std::mt19937& random, engine::ParallelMode mode);

// Kernels that compute nothing; some want a workspace.
engine::ChosenKernel any_kernel(std::uint32_t device_slot, const heddle_op_call& call);

// Blocks by name, for graphs made by hand: "mix", "swap", "in place", "pair", "ones", "attend",
// "turn", "turn the others", "matrix".
engine::NodeTypeRef session_block(const std::string& name);

}  // namespace heddle::test
