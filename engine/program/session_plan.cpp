#include "engine/program/session_plan.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/base/verify.h"
#include "engine/program/session_planner.h"
#include "engine/program/verify_session.h"
#include "heddle/abi/model.h"

namespace heddle::core {

SessionPlanner::SessionPlanner(const Graph& graph, const SessionSpec& spec,
                               const ChooseKernel& choose)
    : graph_(graph),
      spec_(spec),
      inputs_(graph, spec),
      rates_(node_rates(graph)),
      builder_(graph, spec, choose),
      values_(graph, spec, inputs_, rates_, builder_),
      collectives_(spec, builder_, values_) {
  builder_.plan().lanes = inputs_.lanes();
}

SessionPlan SessionPlanner::run() {
  const auto lanes = std::uint32_t(inputs_.lanes().size());
  for (const Rate phase : {Rate::constant, Rate::scheduled, Rate::step}) {
    builder_.begin_phase(phase);
    for (const NodeIndex n : graph_.order) {
      if (rates_[n] != phase) continue;
      for (std::uint32_t lane = 0; lane < lanes; ++lane)
        is_divided(n, lane) ? plan_group(n, lane) : plan_block(n, lane);
    }
  }
  plan_outputs();
  collectives_.close();
  return builder_.finish();
}

void SessionPlanner::plan_outputs() {
  for (const GraphOutput& output : graph_.outputs)
    for (std::uint32_t lane = 0; lane < inputs_.lanes().size(); ++lane) {
      const auto value = values_.value_at(output.from, lane, spec_.home);
      if (!value)
        throw Error(Code::invalid_argument, cat("model output ", quote(output.name),
                                                ": the optional input it shows was not given"));
      builder_.plan().outputs.push_back({lane, output.name, *value, values_.rate_of(output.from)});
    }
}

std::uint32_t SessionPlanner::place_of(NodeIndex n, std::uint32_t lane) const {
  return spec_.placement.parallel == ParallelMode::layers ? spec_.placement.of_block[n]
                                                          : inputs_.lanes()[lane].place;
}

void SessionPlanner::plan_block(NodeIndex n, std::uint32_t lane) {
  PlacedBlock alone;
  alone.place = place_of(n, lane);
  read_inputs(alone, n, lane);
  begin(alone, n, lane, kWholeWeight);
  for (const ProgramOp& op : alone.program.ops) emit(alone, n, lane, op);
  for (std::uint32_t port = 0; port < alone.program.outputs.size(); ++port) {
    const Operand made = alone.in_plan(alone.program.outputs[port]);
    const Source* const held = alone.input_that_is(made);
    if (held != nullptr && values_.rate_of(*held) == builder_.phase())
      values_.hand_on({n, port}, lane, *held);
    else
      values_.add({n, port}, lane, made);
  }
  values_.end_block(n, lane);
}

// Brings what is not there yet: a group has set its shares before.
void SessionPlanner::read_inputs(PlacedBlock& placed, NodeIndex n, std::uint32_t lane) {
  const Node& node = graph_.nodes[n];
  placed.inputs.resize(node.inputs.size());
  for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
    const auto* link = std::get_if<Source>(&node.inputs[i]);
    const bool shape_only = (node.type->input(i).flags & HEDDLE_PORT_SHAPE) != 0;
    auto& operand = placed.inputs[i];
    if (link != nullptr && !operand)
      operand = shape_only ? values_.shape_of(*link, lane)
                           : values_.read_at(*link, lane, placed.place);
    placed.block.inputs.push_back(operand ? std::optional(operand->info) : std::nullopt);
    if (link != nullptr && !operand && (node.type->input(i).flags & HEDDLE_PORT_OPTIONAL) == 0)
      throw Error(Code::invalid_argument,
                  cat("block ", node.id, ", input ", quote(node.type->input(i).name),
                      ": the model's optional input it reads was not given"));
  }
}

// Records the block, and gives its storages their places. `rank`: of the member whose part of the
// weights it gets.
void SessionPlanner::begin(PlacedBlock& placed, NodeIndex n, std::uint32_t lane,
                           std::uint32_t rank) {
  const Node& node = graph_.nodes[n];
  placed.block.node = &node;
  placed.block.compute = spec_.places[placed.place].compute;
  placed.block.device = spec_.places[placed.place].name;
  for (std::uint32_t slot = 0; slot < node.weights.size(); ++slot)
    placed.block.weights.push_back(spec_.weight ? spec_.weight(placed.place, n, slot, rank)
                                                : std::nullopt);
  if (spec_.has_factors) placed.block.factors = factors(n, placed.place, rank);
  placed.program = record_block(placed.block);
  builder_.begin_block({n, lane, placed.place});
  OpCost& cost = builder_.plan().node_cost[n];
  cost.flops += placed.program.cost.flops;
  cost.bytes += placed.program.cost.bytes;
  placed.base.resize(placed.program.storages.size());
  for (std::size_t s = 0; s < placed.base.size(); ++s) {
    const ProgramStorage& storage = placed.program.storages[s];
    if (storage.kind == ProgramStorage::Kind::input)
      placed.base[s] = *placed.inputs[storage.index];
    else if (storage.kind == ProgramStorage::Kind::weight)
      placed.base[s].storage = builder_.weight(n, storage.index, placed.place, rank);
    else
      placed.base[s].storage = builder_.add_scratch(placed.place, storage.bytes);
  }
}

// What patches add beside the node's weights.
SlotFactors SessionPlanner::factors(NodeIndex n, std::uint32_t place, std::uint32_t rank) const {
  const Node& node = graph_.nodes[n];
  SlotFactors all;
  for (std::uint32_t slot = 0; slot < node.weights.size(); ++slot) {
    const auto info = [&](WeightPiece piece) {
      return spec_.weight(place, n, weight_number(node, {slot, piece}), rank);
    };
    const auto down = info(WeightPiece::down), up = info(WeightPiece::up);
    if (!down || !up) continue;
    all.resize(node.weights.size());
    all[slot] = {*down, *up};
  }
  return all;
}

void SessionPlanner::emit(const PlacedBlock& placed, NodeIndex n, std::uint32_t lane,
                          const ProgramOp& op) {
  std::vector<Operand> in, out;
  for (const Operand& o : op.in) in.push_back(placed.in_plan(o));
  for (const Operand& o : op.out) out.push_back(placed.in_plan(o));
  builder_.launch(n, lane, placed.place, op.op, std::move(in), std::move(out), op.attrs);
}

Rate input_rate(const GraphInput& input) {
  switch (input.flags & HEDDLE_INPUT_RATE_MASK) {
    case HEDDLE_INPUT_CONSTANT:
      return Rate::constant;
    case HEDDLE_INPUT_SCHEDULED:
      return Rate::scheduled;
    default:
      return Rate::step;
  }
}

std::vector<Rate> node_rates(const Graph& graph) {
  std::vector<Rate> rates(graph.nodes.size(), Rate::constant);
  for (const NodeIndex n : graph.order) {
    const Node& node = graph.nodes[n];
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
      const auto* link = std::get_if<Source>(&node.inputs[i]);
      if (link == nullptr || (node.type->input(i).flags & HEDDLE_PORT_SHAPE) != 0) continue;
      rates[n] =
          std::max(rates[n], link->node == kGraphInputs ? input_rate(graph.inputs[link->port])
                                                        : rates[link->node]);
    }
  }
  return rates;
}

SessionPlan plan_session(const Graph& graph, const SessionSpec& spec, const ChooseKernel& choose) {
  SessionPlan plan = SessionPlanner(graph, spec, choose).run();
  if constexpr (kVerify) verify_session(graph, spec, plan);
  return plan;
}

}  // namespace heddle::core
