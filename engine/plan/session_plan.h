// A model's block graph, planned for a loop: every op of every block for every set, with kernels chosen and memory laid
// out, so that a step is nothing but enqueueing. Three phases:
//   constant   what reads only constants runs once;
//   scheduled  what reads only constants and scheduled inputs runs once, for all steps at the same time;
//   step       the rest; the sets of a step run block by block, and each step's rows of the scheduled values are copied
//              to a fixed place first, so that the same recording serves every step.
// A value; making it asks devices nothing but what their answers depend on alone (kernel choice, weight forms).
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/plan/program.h"

namespace heddle::core {

enum class Rate { constant = 0, scheduled = 1, step = 2 };

// For each node of the graph, how often it runs. Ports that read shapes only do not count.
std::vector<Rate> node_rates(const Graph& graph);

struct SessionSpec {
  using Infos = std::map<std::string, heddle_tensor_info, std::less<>>;
  struct Set {
    Infos constants, steps;  // by input name
  };
  std::vector<Set> sets;
  Infos schedule;  // (steps, ...)
  std::uint32_t step_count = 1;
  heddle_dtype compute = HEDDLE_F32;
  std::string device;
  std::vector<std::vector<std::optional<heddle_tensor_info>>> weights;  // device form, by node and slot
};

struct ChosenKernel {
  const heddle_kernel* kernel = nullptr;
  std::uint64_t workspace_bytes = 0;
};
using ChooseKernel = std::function<ChosenKernel(const heddle_op_call&)>;

struct SessionStorage {
  enum class Kind { persistent, scratch, weight, constant, schedule, step_input } kind = Kind::scratch;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;               // in its arena: step inputs lie in the persistent one
  std::uint32_t set = 0;                  // of inputs
  std::uint32_t node = 0, slot = 0;       // of weights
  std::string input;                      // of inputs: the name
};

struct PlannedOp {
  NodeIndex node = 0;
  std::uint32_t set = 0;
  ProgramOp op;  // operands name the plan's storages
  const heddle_kernel* kernel = nullptr;
  std::int32_t workspace = -1;  // storage
};

// At the beginning of a step: row `step` of a scheduled value goes to a fixed place.
struct SliceCopy {
  Operand from;  // row 0; the distance of rows is info.stride[0] elements
  PlannedOp copy;
};

struct SessionPlan {
  std::vector<SessionStorage> storages;
  std::array<std::vector<PlannedOp>, 3> phases;
  std::vector<SliceCopy> slices;
  struct Output {
    std::uint32_t set = 0;
    std::string name;
    Operand value;
    Rate rate = Rate::step;
  };
  std::vector<Output> outputs;
  std::uint64_t persistent_bytes = 0, scratch_bytes = 0;
  std::vector<OpCost> node_cost;  // by node: of one step (or of the whole phase), all sets
};

// Throws with the block's name for what blocks refuse, and for inputs that are missing or unknown.
SessionPlan plan_session(const Graph& graph, const SessionSpec& spec, const ChooseKernel& choose);

}  // namespace heddle::core
