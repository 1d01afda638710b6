// How plan_session() works: walks the blocks phase by phase, traces each where placement wants it,
// and writes down what is enqueued (session_builder.h). Where values are is kept in
// session_values.h, what the ranks of a group exchange in session_collectives.h. Blocks on one
// device stand in session_plan.cpp, blocks that a group of devices divides in session_group.cpp.
#pragma once

#include <vector>

#include "engine/program/placed_block.h"
#include "engine/program/session_builder.h"
#include "engine/program/session_collectives.h"
#include "engine/program/session_inputs.h"
#include "engine/program/session_values.h"

namespace heddle::engine {

class SessionPlanner {
 public:
  // The arguments are borrowed.
  SessionPlanner(const Graph& graph, const SessionSpec& spec, const ChooseKernel& choose);
  // Once.
  SessionPlan run();

 private:
  std::uint32_t device_slot_of(NodeIndex n, std::uint32_t branch) const;
  void plan_outputs();
  void plan_block(NodeIndex n, std::uint32_t branch);
  void read_inputs(PlacedBlock& placed, NodeIndex n, std::uint32_t branch);
  void begin(PlacedBlock& placed, NodeIndex n, std::uint32_t branch, std::uint32_t rank);
  void emit(const PlacedBlock& placed, NodeIndex n, std::uint32_t branch, const ProgramOp& op);
  SlotFactors factors(NodeIndex n, std::uint32_t device_slot, std::uint32_t rank) const;

  // Groups.
  bool is_sharded(NodeIndex n, std::uint32_t branch);
  bool has_divided_tokens(const Node& node, std::uint32_t branch);
  bool has_divided_rows(NodeIndex n) const;
  void plan_group(NodeIndex n, std::uint32_t branch);
  PlacedBlock rank_block(NodeIndex n, std::uint32_t branch, std::uint32_t rank);
  void emit_in_step(const std::vector<PlacedBlock>& rank_blocks, NodeIndex n, std::uint32_t branch);
  void add_results(const std::vector<PlacedBlock>& rank_blocks, NodeIndex n, std::uint32_t branch);

  const Graph& graph_;
  const SessionSpec& spec_;
  const SessionInputs inputs_;
  const std::vector<Phase> phases_;
  SessionBuilder builder_;
  SessionValues values_;
  SessionCollectives collectives_;
};

}  // namespace heddle::engine
