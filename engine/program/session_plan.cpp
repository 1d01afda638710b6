#include "engine/program/session_plan.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/base/verify.h"
#include "engine/program/session_planner.h"
#include "engine/program/verify_session.h"
#include "heddle/abi/model.h"

namespace heddle::engine {

SessionPlanner::SessionPlanner(const Graph& graph, const SessionSpec& spec,
                               const ChooseKernel& choose)
    : graph_(graph),
      spec_(spec),
      inputs_(graph, spec),
      phases_(node_phases(graph)),
      builder_(graph, spec, choose),
      values_(graph, spec, inputs_, phases_, builder_),
      collectives_(spec, inputs_.branches(), builder_, values_) {
  builder_.plan().branches = inputs_.branches();
}

SessionPlan SessionPlanner::run() {
  const auto branches = std::uint32_t(inputs_.branches().size());
  for (const Phase phase : {Phase::loop_invariant, Phase::precomputed, Phase::per_step}) {
    builder_.begin_phase(phase);
    for (const NodeIndex n : graph_.order) {
      if (phases_[n] != phase) continue;
      for (std::uint32_t branch = 0; branch < branches; ++branch)
        is_sharded(n, branch) ? plan_group(n, branch) : plan_block(n, branch);
    }
  }
  plan_outputs();
  collectives_.close();
  return builder_.finish();
}

void SessionPlanner::plan_outputs() {
  for (const GraphOutput& output : graph_.outputs)
    for (std::uint32_t branch = 0; branch < inputs_.branches().size(); ++branch) {
      const auto value = values_.value_at(output.from, branch, spec_.home);
      if (!value)
        throw Error(Code::invalid_argument, cat("model output ", quote(output.name),
                                                ": the optional input it shows was not given"));
      builder_.plan().outputs.push_back(
          {branch, output.name, *value, values_.phase_of(output.from)});
    }
}

std::uint32_t SessionPlanner::device_slot_of(NodeIndex n, std::uint32_t branch) const {
  const std::uint32_t rank =
      has(spec_.placement.parallel, ParallelMode::layers) ? spec_.placement.of_block[n] : 0;
  return inputs_.branches()[branch].device_slot + rank;
}

void SessionPlanner::plan_block(NodeIndex n, std::uint32_t branch) {
  PlacedBlock alone;
  alone.device_slot = device_slot_of(n, branch);
  read_inputs(alone, n, branch);
  begin(alone, n, branch, kWholeWeight);
  for (const ProgramOp& op : alone.program.ops) emit(alone, n, branch, op);
  for (std::uint32_t port = 0; port < alone.program.outputs.size(); ++port) {
    const Operand made = alone.in_plan(alone.program.outputs[port]);
    const Source* const held = alone.input_that_is(made);
    if (held != nullptr && values_.phase_of(*held) == builder_.phase())
      values_.hand_on({n, port}, branch, *held);
    else
      values_.add({n, port}, branch, made);
  }
  values_.end_block(n, branch);
}

// Brings what is not there yet: a group has set its shards before.
void SessionPlanner::read_inputs(PlacedBlock& placed, NodeIndex n, std::uint32_t branch) {
  const Node& node = graph_.nodes[n];
  placed.inputs.resize(node.inputs.size());
  for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
    const auto* link = std::get_if<Source>(&node.inputs[i]);
    const bool shape_only = (node.type->input(i).flags & HEDDLE_PORT_SHAPE) != 0;
    auto& operand = placed.inputs[i];
    if (link != nullptr && !operand)
      operand = shape_only ? values_.shape_of(*link, branch)
                           : values_.read_at(*link, branch, placed.device_slot);
    placed.block.inputs.push_back(operand ? std::optional(operand->info) : std::nullopt);
    if (link != nullptr && !operand && (node.type->input(i).flags & HEDDLE_PORT_OPTIONAL) == 0)
      throw Error(Code::invalid_argument,
                  cat("block ", node.id, ", input ", quote(node.type->input(i).name),
                      ": the model's optional input it reads was not given"));
  }
}

// Traces the block, and gives its storages their places. `rank`: of the rank whose part of the
// weights it gets.
void SessionPlanner::begin(PlacedBlock& placed, NodeIndex n, std::uint32_t branch,
                           std::uint32_t rank) {
  const Node& node = graph_.nodes[n];
  placed.block.node = &node;
  placed.block.compute = spec_.device_slots[placed.device_slot].compute;
  placed.block.device = spec_.device_slots[placed.device_slot].name;
  for (std::uint32_t slot = 0; slot < node.weights.size(); ++slot)
    placed.block.weights.push_back(spec_.weight ? spec_.weight(placed.device_slot, n, slot, rank)
                                                : std::nullopt);
  if (spec_.has_factors) placed.block.factors = factors(n, placed.device_slot, rank);
  placed.program = trace_block(placed.block);
  builder_.begin_block({n, branch, placed.device_slot});
  OpCost& cost = builder_.plan().node_cost[n];
  cost.flops += placed.program.cost.flops;
  cost.bytes += placed.program.cost.bytes;
  placed.base.resize(placed.program.storages.size());
  for (std::size_t s = 0; s < placed.base.size(); ++s) {
    const ProgramStorage& storage = placed.program.storages[s];
    if (storage.kind == ProgramStorage::Kind::input)
      placed.base[s] = *placed.inputs[storage.index];
    else if (storage.kind == ProgramStorage::Kind::weight)
      placed.base[s].storage = builder_.weight(n, storage.index, placed.device_slot, rank);
    else
      placed.base[s].storage = builder_.add_scratch(placed.device_slot, storage.bytes);
  }
}

// What stands beside the node's weights.
SlotFactors SessionPlanner::factors(NodeIndex n, std::uint32_t device_slot,
                                    std::uint32_t rank) const {
  const Node& node = graph_.nodes[n];
  SlotFactors all;
  for (std::uint32_t slot = 0; slot < node.weights.size(); ++slot) {
    FactorInfos beside;
    for (const WeightPiece piece : kPiecesBeside)
      beside.of(piece) = spec_.weight(device_slot, n, weight_number(node, {slot, piece}), rank);
    if (!(beside.down && beside.up) && !beside.scale) continue;
    all.resize(node.weights.size());
    all[slot] = beside;
  }
  return all;
}

void SessionPlanner::emit(const PlacedBlock& placed, NodeIndex n, std::uint32_t branch,
                          const ProgramOp& op) {
  std::vector<Operand> in, out;
  for (const Operand& o : op.in) in.push_back(placed.in_plan(o));
  for (const Operand& o : op.out) out.push_back(placed.in_plan(o));
  builder_.launch(n, branch, placed.device_slot, op.op, std::move(in), std::move(out), op.attrs);
}

Phase input_phase(const GraphInput& input) {
  switch (input.flags & HEDDLE_INPUT_PHASE_MASK) {
    case HEDDLE_INPUT_LOOP_INVARIANT:
      return Phase::loop_invariant;
    case HEDDLE_INPUT_PRECOMPUTED:
      return Phase::precomputed;
    default:
      return Phase::per_step;
  }
}

std::vector<Phase> node_phases(const Graph& graph) {
  std::vector<Phase> phases(graph.nodes.size(), Phase::loop_invariant);
  for (const NodeIndex n : graph.order) {
    const Node& node = graph.nodes[n];
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
      const auto* link = std::get_if<Source>(&node.inputs[i]);
      if (link == nullptr || (node.type->input(i).flags & HEDDLE_PORT_SHAPE) != 0) continue;
      phases[n] =
          std::max(phases[n], link->node == kGraphInputs ? input_phase(graph.inputs[link->port])
                                                         : phases[link->node]);
    }
  }
  return phases;
}

SessionPlan plan_session(const Graph& graph, const SessionSpec& spec, const ChooseKernel& choose) {
  SessionPlan plan = SessionPlanner(graph, spec, choose).run();
  if constexpr (kVerify) verify_session(graph, spec, plan);
  return plan;
}

}  // namespace heddle::engine
