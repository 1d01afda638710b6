#include "engine/program/session_plan.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/base/verify.h"
#include "engine/program/session_paging.h"
#include "engine/program/session_planner.h"
#include "engine/program/verify_session.h"
#include "engine/tensor/call.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/model.h"
#include "heddle/abi/ops.h"

namespace heddle::core {

heddle_tensor_info dense(heddle_tensor_info info, const char* what) {
  std::fill(std::begin(info.stride), std::end(info.stride), 0);
  return checked_info(info, what);
}

namespace {

// The shape a step sees of a value that exists for all steps.
heddle_tensor_info one_row(const heddle_tensor_info& info) {
  heddle_tensor_info row = info;
  row.shape[0] = 1;
  return dense(row, "scheduled value");
}

}  // namespace

SessionPlanner::SessionPlanner(const Graph& graph, const SessionSpec& spec, const ChooseKernel& choose)
    : graph_(graph), spec_(spec), choose_(choose), inputs_(graph, spec), rates_(node_rates(graph)) {
  plan_.lanes = inputs_.lanes();
  plan_.node_cost.resize(graph.nodes.size());
}

SessionPlan SessionPlanner::run() {
  for (const Rate phase : {Rate::constant, Rate::scheduled, Rate::step}) {
    phase_ = phase;
    for (const NodeIndex n : graph_.order) {
      if (rates_[n] != phase) continue;
      for (std::uint32_t lane = 0; lane < plan_.lanes.size(); ++lane) is_divided(n, lane) ? plan_group(n, lane) : plan_block(n, lane);
    }
  }
  for (const GraphOutput& output : graph_.outputs)
    for (std::uint32_t lane = 0; lane < plan_.lanes.size(); ++lane) {
      const auto value = value_at(output.from, lane, spec_.home);
      if (!value) throw Error(Code::invalid_argument, cat("model output ", quote(output.name), ": the optional input it shows was not given"));
      plan_.outputs.push_back({lane, output.name, *value, rate_of(output.from)});
    }
  for (const auto* given : {&given_before_, &given_})
    for (const std::int32_t storage : *given) uses_[storage].add(Rate::step, now());
  insert_transfers();
  lay_out_session(plan_, uses_, spec_.places.size());
  page_session(graph_, spec_, plan_);
  return std::move(plan_);
}

Rate SessionPlanner::rate_of(const Source& source) const {
  return source.node == kGraphInputs ? input_rate(graph_.inputs[source.port]) : rates_[source.node];
}

std::uint32_t SessionPlanner::place_of(NodeIndex n, std::uint32_t lane) const {
  return spec_.placement.parallel == ParallelMode::layers ? spec_.placement.of_block[n] : plan_.lanes[lane].place;
}

bool SessionPlanner::is_external(const Source& source) const {
  return source.node == kGraphInputs && input_rate(graph_.inputs[source.port]) != Rate::step;
}

std::int32_t SessionPlanner::add_storage(SessionStorage storage) {
  plan_.storages.push_back(std::move(storage));
  uses_.push_back({});
  return std::int32_t(plan_.storages.size() - 1);
}

std::int32_t SessionPlanner::add_scratch(std::uint32_t place, std::uint64_t bytes) {
  return add_storage({SessionStorage::Kind::scratch, place, bytes, 0, 0, 0, 0, {}});
}

std::int32_t SessionPlanner::weight(NodeIndex n, std::uint32_t slot, std::uint32_t place, std::uint32_t member) {
  const auto [at, is_new] = weights_.try_emplace({n, slot, place, member}, 0);
  if (is_new) {
    at->second = add_storage({SessionStorage::Kind::weight, place, 0, 0, 0, n, slot, {}});
    plan_.storages[at->second].member = member;
  }
  return at->second;
}

// An input of the graph that stays the same during the loop: brought to a place before it.
std::optional<Operand> SessionPlanner::external_at(const Source& source, std::uint32_t lane, std::uint32_t place) {
  const GraphInput& input = graph_.inputs[source.port];
  const Rate rate = input_rate(input);
  lane = inputs_.first_equal(input, lane);
  const auto found = externals_.find({source.port, lane, place});
  if (found != externals_.end()) return found->second;
  const auto info = inputs_.info(input, lane);
  if (!info) return {};
  const auto kind = rate == Rate::constant ? SessionStorage::Kind::constant : SessionStorage::Kind::schedule;
  const Operand value{add_storage({kind, place, dense_bytes(*info), 0, lane, 0, 0, input.name}), 0, *info};
  externals_[{source.port, lane, place}] = value;
  return value;
}

// Where a value is made, whole; nothing for an optional input that was not given. Not for constant and scheduled inputs.
std::optional<Operand> SessionPlanner::origin(const Source& source, std::uint32_t lane) {
  if (divided_.contains(key(source, lane)) && !origins_.contains(key(source, lane))) gather(source, lane);
  if (const auto found = origins_.find(key(source, lane)); found != origins_.end()) return found->second;
  if (source.node != kGraphInputs) throw Error(Code::internal, cat("block ", graph_.nodes[source.node].id, " was read before it was planned"));
  const GraphInput& input = graph_.inputs[source.port];
  const auto given = inputs_.info(input, lane);
  if (!given) return {};
  const heddle_tensor_info info = dense(*given, "step input");  // copied to a fixed place: row-major there
  const Operand value{add_storage({SessionStorage::Kind::step_input, spec_.home, dense_bytes(info), 0, lane, 0, 0, input.name}), 0, info};
  origins_[key(source, lane)] = value;
  return value;
}

// A value where a place can read it, with the transfer it takes.
std::optional<Operand> SessionPlanner::value_at(Source source, std::uint32_t lane, std::uint32_t place) {
  source = maker_of(source, lane);
  if (is_external(source)) return external_at(source, lane, place);
  const auto value = origin(source, lane);
  if (!value || plan_.storages[value->storage].place == place) return value;
  if (const auto replica = replicas_.find({key(source, lane), place}); replica != replicas_.end()) return replica->second;
  const auto [at, is_new] = arrivals_.try_emplace({key(source, lane), place}, 0);
  if (is_new) at->second = send(source, lane, *value, place, rate_of(source), made_by(source, lane));
  await(at->second, rate_of(source));
  return plan_.transfers[at->second].dest;
}

// How many actions of its phase stand before a value is there whole.
std::size_t SessionPlanner::made_by(const Source& source, std::uint32_t lane) const {
  if (const auto gathered = gathered_.find(key(source, lane)); gathered != gathered_.end()) return gathered->second;
  const auto end = block_ends_.find({source.node, lane});
  return end == block_ends_.end() ? 0 : end->second;
}

// What an earlier phase sent is there: it has been awaited at the end of that phase.
void SessionPlanner::await(std::uint32_t transfer, Rate rate) {
  if (rate == phase_ && awaited_.insert(transfer).second) act(SessionAction::Kind::await, transfer);
}

// `position`: how many actions of the phase stand before the transfer.
std::uint32_t SessionPlanner::send(Source source, std::uint32_t lane, const Operand& value, std::uint32_t place, Rate rate, std::size_t position) {
  const PlannedTransfer transfer = transfer_to(source, lane, value, place, rate, now());
  uses_[value.storage].crosses = uses_[transfer.dest.storage].crosses = true;
  sent_[int(rate)].emplace_back(position, std::uint32_t(plan_.transfers.size()));
  plan_.transfers.push_back(transfer);
  return std::uint32_t(plan_.transfers.size() - 1);
}

// A copy, or the order alone where memory is shared. `from_op`: since when what arrives has its room, as in now().
PlannedTransfer SessionPlanner::transfer_to(Source source, std::uint32_t lane, const Operand& value, std::uint32_t place, Rate rate, std::uint32_t from_op) {
  PlannedTransfer transfer{maker_of(source, lane), lane, plan_.storages[value.storage].place, place, value, value, 0};
  if (spec_.places[transfer.from].memory == spec_.places[place].memory) return transfer;
  const Extent span = extent(value.info);
  transfer.bytes = std::uint64_t(dtype_bytes(DType(value.info.dtype), span.end - span.begin));
  const auto before = std::uint64_t(dtype_bytes(DType(value.info.dtype), -span.begin));
  transfer.dest = {add_scratch(place, transfer.bytes), before, value.info};
  uses_[transfer.dest.storage].add(rate, from_op);
  return transfer;
}

// As value_at, for a reader of the current phase: a step reads one row of a scheduled value.
std::optional<Operand> SessionPlanner::read_at(Source source, std::uint32_t lane, std::uint32_t place) {
  source = maker_of(source, lane);
  if (phase_ != Rate::step || rate_of(source) != Rate::scheduled) return value_at(source, lane, place);
  if (is_external(source)) lane = inputs_.first_equal(graph_.inputs[source.port], lane);
  const std::pair slot{key(source, lane), place};
  if (const auto found = slices_.find(slot); found != slices_.end()) return found->second;
  const auto value = value_at(source, lane, place);
  if (!value) return {};
  const heddle_tensor_info row = one_row(value->info);
  const Operand to{add_scratch(place, dense_bytes(row)), 0, row};
  Operand from = *value;
  from.info.shape[0] = 1;
  SliceCopy slice{from, {}};
  slice.from.info = value->info;
  slice.copy.lane = lane;
  slice.copy.place = place;
  slice.copy.op = {op_id(HEDDLE_OP_COPY), {}, {from}, {to}};
  choose_kernel(slice.copy, 0);
  uses_[from.storage].add(Rate::step, 0);
  uses_[to.storage].add(Rate::step, 0);
  plan_.slices.push_back(std::move(slice));
  slices_[slot] = to;
  return to;
}

// A shape is known in every phase, so the value itself is not waited for, not moved and not kept.
std::optional<Operand> SessionPlanner::shape_of(Source source, std::uint32_t lane) {
  source = maker_of(source, lane);
  std::optional<heddle_tensor_info> info;
  if (source.node == kGraphInputs) info = inputs_.info(graph_.inputs[source.port], lane);
  else if (!origins_.contains(key(source, lane)))
    throw Error(Code::unsupported, cat("block ", graph_.nodes[source.node].id, ": its shape is read in an earlier phase than it runs in"));
  else info = origins_.at(key(source, lane)).info;
  if (!info) return {};
  if (rate_of(source) == Rate::step && source.node == kGraphInputs) info = dense(*info, "step input");
  return Operand{-1, 0, rate_of(source) == Rate::scheduled ? one_row(*info) : *info};
}

void SessionPlanner::plan_block(NodeIndex n, std::uint32_t lane) {
  Member alone;
  alone.place = place_of(n, lane);
  read_inputs(alone, n, lane);
  begin(alone, n, lane, kWholeWeight);
  for (const ProgramOp& op : alone.program.ops) emit(alone, n, lane, op);
  for (std::uint32_t port = 0; port < alone.program.outputs.size(); ++port) {
    const Operand made = global(alone, n, alone.program.outputs[port]);
    const Source* const held = find_input(alone, n, made);
    if (held != nullptr && rate_of(*held) == phase_) handed_on_[{n, port, lane}] = maker_of(*held, lane);
    else origins_[{n, port, lane}] = made;
  }
  block_ends_[{n, lane}] = plan_.phases[int(phase_)].size();
}

// The input that an operand of a block is, from its first element to its last; nullptr when it is none.
const Source* SessionPlanner::find_input(const Member& member, NodeIndex n, const Operand& operand) const {
  const Node& node = graph_.nodes[n];
  for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
    const auto* link = std::get_if<Source>(&node.inputs[i]);
    const auto& input = member.inputs[i];
    if (link != nullptr && input && input->storage == operand.storage && input->offset_bytes == operand.offset_bytes && input->info.dtype == operand.info.dtype &&
        same_shape(input->info, operand.info) && std::ranges::equal(input->info.stride, operand.info.stride))
      return link;
  }
  return nullptr;
}

// Brings what is not there yet: a group has set its shares before.
void SessionPlanner::read_inputs(Member& member, NodeIndex n, std::uint32_t lane) {
  const Node& node = graph_.nodes[n];
  member.inputs.resize(node.inputs.size());
  for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
    const auto* link = std::get_if<Source>(&node.inputs[i]);
    const bool shape_only = (node.type->input(i).flags & HEDDLE_PORT_SHAPE) != 0;
    auto& operand = member.inputs[i];
    if (link != nullptr && !operand) operand = shape_only ? shape_of(*link, lane) : read_at(*link, lane, member.place);
    member.block.inputs.push_back(operand ? std::optional(operand->info) : std::nullopt);
    if (link != nullptr && !operand && (node.type->input(i).flags & HEDDLE_PORT_OPTIONAL) == 0)
      throw Error(Code::invalid_argument, cat("block ", node.id, ", input ", quote(node.type->input(i).name), ": the model's optional input it reads was not given"));
  }
}

// Records the block, and gives its storages their places. `rank`: of the member whose part of the weights it gets.
void SessionPlanner::begin(Member& member, NodeIndex n, std::uint32_t lane, std::uint32_t rank) {
  const Node& node = graph_.nodes[n];
  member.block.node = &node;
  member.block.compute = spec_.places[member.place].compute;
  member.block.device = spec_.places[member.place].name;
  for (std::uint32_t slot = 0; slot < node.weights.size(); ++slot)
    member.block.weights.push_back(spec_.weight ? spec_.weight(member.place, n, slot, rank) : std::nullopt);
  if (spec_.has_factors) member.block.factors = factors(n, member.place, rank);
  member.program = record_block(member.block);
  act(SessionAction::Kind::block, plan_.blocks.size());
  plan_.blocks.push_back({n, lane, member.place});
  plan_.node_cost[n].flops += member.program.cost.flops;
  plan_.node_cost[n].bytes += member.program.cost.bytes;
  member.base.resize(member.program.storages.size());
  for (std::size_t s = 0; s < member.base.size(); ++s) {
    const ProgramStorage& storage = member.program.storages[s];
    if (storage.kind == ProgramStorage::Kind::input) member.base[s] = *member.inputs[storage.index];
    else if (storage.kind == ProgramStorage::Kind::weight) member.base[s].storage = weight(n, storage.index, member.place, rank);
    else member.base[s].storage = add_scratch(member.place, storage.bytes);
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

Operand SessionPlanner::global(const Member& member, NodeIndex n, const Operand& local) const {
  if (local.storage < 0) return local;
  const Operand& base = member.base[local.storage];
  if (base.storage < 0)
    throw Error(Code::invalid_argument, cat("block ", graph_.nodes[n].id, " reads elements of an input that it declares to read by shape only"));
  return Operand{base.storage, base.offset_bytes + local.offset_bytes, local.info};
}

void SessionPlanner::emit(const Member& member, NodeIndex n, std::uint32_t lane, const ProgramOp& op) {
  std::vector<Operand> in, out;
  for (const Operand& o : op.in) in.push_back(global(member, n, o));
  for (const Operand& o : op.out) out.push_back(global(member, n, o));
  launch(n, lane, member.place, op.op, std::move(in), std::move(out), op.attrs);
}

void SessionPlanner::launch(NodeIndex n, std::uint32_t lane, std::uint32_t place, std::uint32_t op, std::vector<Operand> in, std::vector<Operand> out,
                            std::vector<std::byte> attrs) {
  PlannedOp planned{n, lane, place, {op, std::move(attrs), std::move(in), std::move(out)}, nullptr, -1};
  for (const auto* list : {&planned.op.in, &planned.op.out})
    for (const Operand& o : *list)
      if (o.storage >= 0) uses_[o.storage].add(phase_, now());
  choose_kernel(planned, now());
  act(SessionAction::Kind::launch, plan_.ops.size());
  plan_.ops.push_back(std::move(planned));
}

void SessionPlanner::choose_kernel(PlannedOp& planned, std::uint32_t at) {
  std::vector<heddle_view> views(planned.op.in.size() + planned.op.out.size());
  std::vector<const heddle_view*> pointers(views.size(), nullptr);
  std::size_t i = 0;
  for (const auto* list : {&planned.op.in, &planned.op.out})
    for (const Operand& o : *list) {
      if (o.storage >= 0) {
        views[i] = {o.info, nullptr};
        pointers[i] = &views[i];
      }
      ++i;
    }
  const heddle_op_call call{sizeof(heddle_op_call), op_name(planned.op.op), std::uint32_t(planned.op.in.size()), std::uint32_t(planned.op.out.size()),
                            pointers.data(), pointers.data() + planned.op.in.size(), planned.op.attrs.data(), std::uint32_t(planned.op.attrs.size())};
  const ChosenKernel chosen = choose_(planned.place, call);
  planned.kernel = chosen.kernel;
  if (chosen.workspace_bytes == 0) return;
  planned.workspace = add_scratch(planned.place, chosen.workspace_bytes);
  uses_[planned.workspace].add(phase_, at);
}

// A transfer starts right behind the block that makes its value, so that it hides behind what comes next.
void SessionPlanner::insert_transfers() {
  for (int phase = 0; phase < 3; ++phase) {
    std::ranges::stable_sort(sent_[phase], {}, [](const auto& s) { return s.first; });
    std::vector<SessionAction> merged;
    auto next = sent_[phase].begin();
    const auto& actions = plan_.phases[phase];
    for (std::size_t i = 0; i <= actions.size(); ++i) {
      for (; next != sent_[phase].end() && next->first == i; ++next) merged.push_back({SessionAction::Kind::transfer, next->second});
      if (i < actions.size()) merged.push_back(actions[i]);
    }
    // What only later phases read: copies have streams of their own, so the end of a phase alone does not wait for them.
    for (const auto& [behind, transfer] : sent_[phase])
      if (!awaited_.contains(transfer)) merged.push_back({SessionAction::Kind::await, transfer});
    plan_.phases[phase] = std::move(merged);
  }
}

Rate input_rate(const GraphInput& input) {
  switch (input.flags & HEDDLE_INPUT_RATE_MASK) {
    case HEDDLE_INPUT_CONSTANT: return Rate::constant;
    case HEDDLE_INPUT_SCHEDULED: return Rate::scheduled;
    default: return Rate::step;
  }
}

std::vector<Rate> node_rates(const Graph& graph) {
  std::vector<Rate> rates(graph.nodes.size(), Rate::constant);
  for (const NodeIndex n : graph.order) {
    const Node& node = graph.nodes[n];
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
      const auto* link = std::get_if<Source>(&node.inputs[i]);
      if (link == nullptr || (node.type->input(i).flags & HEDDLE_PORT_SHAPE) != 0) continue;
      rates[n] = std::max(rates[n], link->node == kGraphInputs ? input_rate(graph.inputs[link->port]) : rates[link->node]);
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
