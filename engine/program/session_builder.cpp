#include "engine/program/session_builder.h"

#include <algorithm>
#include <iterator>

#include "engine/base/error.h"
#include "engine/program/session_paging.h"
#include "engine/tensor/call.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/ops.h"

namespace heddle::engine {

SessionBuilder::SessionBuilder(const Graph& graph, const SessionSpec& spec,
                               const ChooseKernel& choose)
    : graph_(graph), spec_(spec), choose_(choose) {
  plan_.node_cost.resize(graph.nodes.size());
}

std::int32_t SessionBuilder::add_storage(SessionStorage storage) {
  plan_.storages.push_back(std::move(storage));
  uses_.push_back({});
  return std::int32_t(plan_.storages.size() - 1);
}

std::int32_t SessionBuilder::add_scratch(std::uint32_t device_slot, std::uint64_t bytes) {
  return add_storage({SessionStorage::Kind::scratch, device_slot, bytes, 0, 0, 0, 0, {}});
}

std::int32_t SessionBuilder::weight(NodeIndex n, std::uint32_t slot, std::uint32_t device_slot,
                                    std::uint32_t rank) {
  const auto [at, is_new] = weights_.try_emplace({n, slot, device_slot, rank}, 0);
  if (is_new) {
    at->second = add_storage({SessionStorage::Kind::weight, device_slot, 0, 0, 0, n, slot, {}});
    plan_.storages[at->second].rank = rank;
  }
  return at->second;
}

void SessionBuilder::begin_block(SessionPlan::Block block) {
  act(SessionAction::Kind::block, plan_.blocks.size());
  plan_.blocks.push_back(block);
}

void SessionBuilder::launch(NodeIndex n, std::uint32_t branch, std::uint32_t device_slot,
                            std::uint32_t op, std::vector<Operand> in, std::vector<Operand> out,
                            std::vector<std::byte> attrs) {
  PlannedOp planned{
      n, branch, device_slot, {op, std::move(attrs), std::move(in), std::move(out)}, nullptr, -1};
  for (const auto* list : {&planned.op.in, &planned.op.out})
    for (const Operand& o : *list)
      if (o.storage >= 0) use(o.storage, phase_, now());
  choose_kernel(planned, now());
  act(SessionAction::Kind::launch, plan_.ops.size());
  plan_.ops.push_back(std::move(planned));
}

void SessionBuilder::choose_kernel(PlannedOp& planned, std::uint32_t at) {
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
  const heddle_op_call call{sizeof(heddle_op_call),
                            op_name(planned.op.op),
                            std::uint32_t(planned.op.in.size()),
                            std::uint32_t(planned.op.out.size()),
                            pointers.data(),
                            pointers.data() + planned.op.in.size(),
                            planned.op.attrs.data(),
                            std::uint32_t(planned.op.attrs.size())};
  const ChosenKernel chosen = choose_(planned.device_slot, call);
  planned.kernel = chosen.kernel;
  if (chosen.workspace_bytes == 0) return;
  planned.workspace = add_scratch(planned.device_slot, chosen.workspace_bytes);
  use(planned.workspace, phase_, at);
}

Operand SessionBuilder::add_slice(const Operand& value, std::uint32_t branch,
                                  std::uint32_t device_slot) {
  const heddle_tensor_info row = one_row(value.info);
  const Operand to{add_scratch(device_slot, dense_bytes(row)), 0, row};
  Operand from = value;
  from.info.shape[0] = 1;
  SliceCopy slice{from, {}};
  slice.from.info = value.info;
  slice.copy.branch = branch;
  slice.copy.device_slot = device_slot;
  slice.copy.op = {op_id(HEDDLE_OP_COPY), {}, {from}, {to}};
  choose_kernel(slice.copy, 0);
  use(from.storage, Phase::per_step, 0);
  use(to.storage, Phase::per_step, 0);
  plan_.slices.push_back(std::move(slice));
  return to;
}

PlannedTransfer SessionBuilder::transfer_to(Source source, std::uint32_t branch,
                                            const Operand& value, std::uint32_t device_slot,
                                            Phase phase, std::uint32_t from_op) {
  PlannedTransfer transfer{source, branch, device_slot_of(value), device_slot, value, value, 0};
  if (spec_.device_slots[transfer.from].memory == spec_.device_slots[device_slot].memory)
    return transfer;
  const Extent span = extent(value.info);
  transfer.bytes = std::uint64_t(dtype_bytes(DType(value.info.dtype), span.end - span.begin));
  const auto before = std::uint64_t(dtype_bytes(DType(value.info.dtype), -span.begin));
  transfer.dest = {add_scratch(device_slot, transfer.bytes), before, value.info};
  use(transfer.dest.storage, phase, from_op);
  return transfer;
}

std::uint32_t SessionBuilder::add_transfer(PlannedTransfer transfer, Phase phase,
                                           std::size_t position) {
  const auto number = std::uint32_t(plan_.transfers.size());
  sent_[int(phase)].emplace_back(position, number);
  plan_.transfers.push_back(std::move(transfer));
  return number;
}

std::uint32_t SessionBuilder::send(Source source, std::uint32_t branch, const Operand& value,
                                   std::uint32_t device_slot, Phase phase, std::size_t position) {
  PlannedTransfer transfer = transfer_to(source, branch, value, device_slot, phase, now());
  uses_[value.storage].crosses = uses_[transfer.dest.storage].crosses = true;
  return add_transfer(std::move(transfer), phase, position);
}

// What an earlier phase sent is there: it has been awaited at the end of that phase.
void SessionBuilder::await(std::uint32_t transfer, Phase phase) {
  if (phase == phase_ && awaited_.insert(transfer).second)
    act(SessionAction::Kind::await, transfer);
}

SessionPlan SessionBuilder::finish() {
  insert_transfers();
  if (std::optional<SessionPlan> made = finish_with_lanes()) return std::move(*made);
  lay_out_session(plan_, std::move(uses_), std::vector<std::uint64_t>(spec_.device_slots.size()));
  page_session(graph_, spec_, plan_);
  return std::move(plan_);
}

// Nothing where no device slot has lanes, and where their memory would have weights streamed: two
// branches at a time gain less than that costs.
std::optional<SessionPlan> SessionBuilder::finish_with_lanes() const {
  // Two branches at a time pay off where neither fills the device, and such branches take little.
  constexpr std::uint64_t kMostLaneBytes = std::uint64_t{256} << 20, kShareOfBudget = 32;
  std::vector<std::uint64_t> lane_bytes;
  for (const SessionSpec::DeviceSlot& slot : spec_.device_slots)
    lane_bytes.push_back(
        slot.captures_other_streams ? std::min(kMostLaneBytes, slot.budget / kShareOfBudget) : 0);
  if (plan_.branches.size() < 2 || std::ranges::count(lane_bytes, 0u) == std::ssize(lane_bytes))
    return std::nullopt;
  SessionPlan plan = plan_;
  lay_out_session(plan, uses_, lane_bytes);
  const auto has_lanes = [](const SessionPlan::Arenas& arenas) { return arenas.has_lanes; };
  if (std::ranges::none_of(plan.arenas, has_lanes)) return std::nullopt;
  try {
    page_session(graph_, spec_, plan);
  } catch (const Error& error) {
    if (error.code() != Code::out_of_memory) throw;
    return std::nullopt;
  }
  const bool streams = std::ranges::any_of(plan.arenas, [](const SessionPlan::Arenas& arenas) {
    return arenas.has_lanes && arenas.staging_ring_bytes > 0;
  });
  return streams ? std::nullopt : std::optional(std::move(plan));
}

// A transfer starts right behind the block that makes its value, so that it hides behind what comes
// next.
void SessionBuilder::insert_transfers() {
  for (int phase = 0; phase < 3; ++phase) {
    std::ranges::stable_sort(sent_[phase], {}, [](const auto& s) { return s.first; });
    std::vector<SessionAction> merged;
    auto next = sent_[phase].begin();
    const auto& actions = plan_.phases[phase];
    for (std::size_t i = 0; i <= actions.size(); ++i) {
      for (; next != sent_[phase].end() && next->first == i; ++next)
        merged.push_back({SessionAction::Kind::transfer, next->second});
      if (i < actions.size()) merged.push_back(actions[i]);
    }
    // What only later phases read: copies have streams of their own, so the end of a phase alone
    // does not wait for them.
    for (const auto& [behind, transfer] : sent_[phase])
      if (!awaited_.contains(transfer)) merged.push_back({SessionAction::Kind::await, transfer});
    plan_.phases[phase] = std::move(merged);
  }
}

Operand part_of(const Operand& whole, std::uint32_t axis, std::int64_t begin, std::int64_t count) {
  Operand part = whole;
  part.info.shape[axis] = count;
  part.offset_bytes +=
      std::uint64_t(dtype_bytes(DType(whole.info.dtype), begin * whole.info.stride[axis]));
  return part;
}

heddle_tensor_info dense(heddle_tensor_info info, const char* what) {
  std::fill(std::begin(info.stride), std::end(info.stride), 0);
  return checked_info(info, what);
}

heddle_tensor_info one_row(const heddle_tensor_info& info) {
  heddle_tensor_info row = info;
  row.shape[0] = 1;
  return dense(row, "precomputed value");
}

}  // namespace heddle::engine
