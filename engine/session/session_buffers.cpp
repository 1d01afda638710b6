#include "engine/session/session_buffers.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/memory/weight_rows.h"
#include "engine/program/weight_sources.h"
#include "engine/tensor/call.h"
#include "engine/tensor/shape.h"
#include "engine/transfer/transfer.h"

namespace heddle::engine {

void SessionBuffers::set_up() {
  // Which set a step input belongs to is not asked again, so externals may go by the records given
  // now.
  bring_externals();
  claims_ = reserve();
  weights_.resize(view_.plan.storages.size());
  expect_weights();
  is_loading_ = true;
  // Several devices load at the same time, where one that waits for another's part of a step would
  // load behind that.
  if (!view_.plan.pages.empty() || view_.device_slot_count() > 1) {
    for (std::size_t s = 0; s < weights_.size(); ++s)
      if (view_.plan.storages[s].kind == SessionStorage::Kind::weight) load(s);
    finish_loading();
  }
  allocate_arenas();
  if (!is_loading_) claims_.clear();
}

void SessionBuffers::leave() {
  for (std::size_t s = 0; s < externals_.size(); ++s)
    if (externals_[s]) view_.state(view_.plan.storages[s].device_slot).retain(externals_[s]);
}

void SessionBuffers::bring_externals() {
  const SessionContext& context = view_.context;
  externals_.resize(view_.plan.storages.size());
  // The sets may share a tensor. What was brought is held as long as its address tells it from
  // others: a branch's items are a view that nobody else holds.
  std::map<std::pair<const heddle_tensor*, std::uint32_t>, std::pair<Tensor, Tensor>> brought;
  for (std::size_t s = 0; s < view_.plan.storages.size(); ++s) {
    const SessionStorage& storage = view_.plan.storages[s];
    const bool is_schedule = storage.kind == SessionStorage::Kind::precomputed;
    if (!is_schedule && storage.kind != SessionStorage::Kind::loop_invariant) continue;
    const Tensor given = branch_input(
        is_schedule ? *context.request.schedule
                    : *context.request.constants[view_.plan.branches[storage.branch].set],
        storage);
    auto& [held, here] = brought[{given.get(), storage.device_slot}];
    if (!held) {
      DeviceState& state = view_.state(storage.device_slot);
      WorkWatch watch;
      if (context.timeline != nullptr)
        watch =
            context.timeline->watch("transfer", cat(storage.input, " to ", state.device().name()));
      held = given;
      here = Transfer(given, &state, watch).await();
    }
    externals_[s] = here;
  }
}

// Before anything is taken: else two sessions that come at once would each get half of what it
// needs. What of the model is there already it shares.
std::vector<Reservation> SessionBuffers::reserve() const {
  const Model& model = *view_.context.model;
  const std::string name = weights_name(model);
  std::vector<Reservation> claims;
  for (std::uint32_t p = 0; p < view_.device_slot_count(); ++p) {
    const SessionPlan::Arenas& arenas = view_.plan.arenas[p];
    const Pool& pool = view_.state(p).pool();
    std::uint64_t weights = 0, there = 0;
    for (const SessionStorage& storage : view_.plan.storages)
      if (storage.kind == SessionStorage::Kind::weight && storage.device_slot == p)
        weights += pool.rounded(storage.bytes);
    for (const ModelWeights& each : view_.device_slots.device_slots[p].weights->models())
      if (each.model == model.identity) there += each.bytes;
    const std::uint64_t more = weights - std::min(weights, there);
    const std::uint64_t rooms =
        pool.rounded(arenas.persistent_bytes) + pool.rounded(arenas.scratch_bytes) +
        (arenas.staging_ring_bytes == 0 ? 0 : pool.rounded(arenas.staging_ring_bytes));
    claims.push_back(view_.state(p).ledger().reserve(
        more + rooms, cat("a session of ", name, " (", format_bytes(more), " of weights)")));
  }
  return claims;
}

namespace {

// Weights in the order in which a session reads them first; then those that nothing reads.
std::vector<std::size_t> by_first_use(const SessionPlan& plan) {
  std::vector<std::size_t> order;
  std::vector<bool> is_in(plan.storages.size());
  const auto add = [&](std::size_t s) {
    if (plan.storages[s].kind != SessionStorage::Kind::weight || is_in[s]) return;
    is_in[s] = true;
    order.push_back(s);
  };
  for (const auto& actions : plan.phases)
    for (const SessionAction& action : actions) {
      if (action.kind != SessionAction::Kind::launch) continue;
      for (const Operand& operand : plan.ops[action.index].op.in)
        if (operand.storage >= 0) add(std::size_t(operand.storage));
    }
  for (std::size_t s = 0; s < plan.storages.size(); ++s) add(s);
  return order;
}

}  // namespace

void SessionBuffers::expect_weights() {
  std::vector<std::vector<FilePart>> wanted(view_.device_slot_count());
  for (const std::size_t s : by_first_use(view_.plan)) {
    const SessionStorage& storage = view_.plan.storages[s];
    const WeightSource source = view_.weight_source(storage);
    if (!view_.device_slots.device_slots[storage.device_slot].weights->has(
            source, view_.context.model->checkpoint->identity()))
      std::ranges::move(loaded_parts(source, view_.state(storage.device_slot)),
                        std::back_inserter(wanted[storage.device_slot]));
  }
  for (std::uint32_t p = 0; p < view_.device_slot_count(); ++p)
    add_expectation(view_, expected_, p, wanted[p], UseOrder::once);
}

bool SessionBuffers::has_weights_of(const PlannedOp& op) const {
  return !is_loading_ || std::ranges::all_of(op.op.in, [&](const Operand& operand) {
    return operand.storage < 0 ||
           view_.plan.storages[operand.storage].kind != SessionStorage::Kind::weight ||
           weights_[operand.storage] != nullptr;
  });
}

void SessionBuffers::load_weights_of(const PlannedOp& op) {
  for (const Operand& operand : op.op.in)
    if (operand.storage >= 0 &&
        view_.plan.storages[operand.storage].kind == SessionStorage::Kind::weight &&
        weights_[operand.storage] == nullptr)
      load(std::size_t(operand.storage));
}

void SessionBuffers::load(std::size_t s) {
  if (view_.context.cancelled())
    throw Error(Code::cancelled, "cancelled while weights were loaded");
  const Model& model = *view_.context.model;
  const SessionStorage& storage = view_.plan.storages[s];
  const std::string name = weights_name(model);
  weights_[s] = view_.device_slots.device_slots[storage.device_slot].weights->get(
      view_.weight_source(storage), model.checkpoint->identity(), view_.weight_watch(storage),
      {model.identity, name, std::uint32_t(s)}, &claims_[storage.device_slot]);
}

void SessionBuffers::finish_loading() {
  if (!is_loading_) return;
  for (std::uint32_t p = 0; p < view_.device_slot_count(); ++p) {
    std::vector<std::shared_ptr<const DeviceWeight>> here;
    for (std::size_t s = 0; s < weights_.size(); ++s)
      if (weights_[s] != nullptr && view_.plan.storages[s].device_slot == p)
        here.push_back(weights_[s]);
    view_.device_slots.device_slots[p].weights->finish(here);
  }
  is_loading_ = false;
  expected_.clear();
  if (!arenas_.empty()) claims_.clear();
}

void SessionBuffers::abandon_loading() noexcept {
  if (!is_loading_) return;
  for (const SessionDeviceSlot& slot : view_.device_slots.device_slots) {
    try {
      slot.weights->finish();
    } catch (const std::exception&) {
      // What could not be made is no longer there, and is made again when it is wanted.
    }
  }
}

void SessionBuffers::allocate_arenas() {
  const std::string name = weights_name(*view_.context.model);
  const std::string staging_ring = cat("the staging ring of ", name),
                    arena = cat("the activations of ", name);
  for (std::uint32_t p = 0; p < view_.device_slot_count(); ++p) {
    DeviceState& state = view_.state(p);
    const SessionPlan::Arenas& bytes = view_.plan.arenas[p];
    const std::uint32_t owner = state.ledger().owner(name);
    const PieceUse activations{{MemoryKind::activations, owner}, arena, &claims_[p]};
    PieceUse scratch = activations;
    scratch.workspace = largest_workspace(p);
    arenas_.push_back(
        {state.allocate(bytes.persistent_bytes, activations),
         state.allocate(bytes.scratch_bytes, scratch),
         bytes.staging_ring_bytes == 0
             ? nullptr
             : state.allocate(bytes.staging_ring_bytes,
                              {{MemoryKind::staging_ring, owner}, staging_ring, &claims_[p]})});
  }
}

// Each kernel has its own while it runs: they lie over one another, and beside activations.
std::uint64_t SessionBuffers::largest_workspace(std::uint32_t device_slot) const {
  std::uint64_t largest = 0;
  const auto add = [&](std::int32_t storage) {
    if (storage < 0) return;
    const SessionStorage& workspace = view_.plan.storages[std::size_t(storage)];
    if (workspace.device_slot == device_slot) largest = std::max(largest, workspace.bytes);
  };
  for (const PlannedOp& op : view_.plan.ops) add(op.workspace);
  for (const PlannedTransfer& transfer : view_.plan.transfers) add(transfer.workspace);
  return largest;
}

std::byte* SessionBuffers::address(const Operand& operand) const {
  const SessionStorage& storage = view_.plan.storages[operand.storage];
  const auto in = [&](const std::shared_ptr<DeviceMemory>& arena) {
    return arena->data() + storage.offset + operand.offset_bytes;
  };
  switch (storage.kind) {
    case SessionStorage::Kind::persistent:
    case SessionStorage::Kind::step_input:
      return in(arenas_[storage.device_slot].persistent);
    case SessionStorage::Kind::scratch:
      return in(arenas_[storage.device_slot].scratch);
    case SessionStorage::Kind::page:
      return in(arenas_[storage.device_slot].staging_ring);
    case SessionStorage::Kind::weight:
      return weights_[operand.storage]->memory->data() + operand.offset_bytes;
    default:
      return externals_[operand.storage]->data() + operand.offset_bytes;
  }
}

Tensor SessionBuffers::output(const SessionPlan::Output& output) const {
  const SessionStorage& storage = view_.plan.storages[output.value.storage];
  if (storage.kind == SessionStorage::Kind::loop_invariant ||
      storage.kind == SessionStorage::Kind::precomputed) {
    const Tensor& external = externals_[output.value.storage];
    return make_tensor(output.value.info, external->storage,
                       external->offset_bytes + output.value.offset_bytes);
  }
  const Arenas& arenas = arenas_[storage.device_slot];
  return make_tensor(
      output.value.info,
      storage.kind == SessionStorage::Kind::scratch ? arenas.scratch : arenas.persistent,
      storage.offset + output.value.offset_bytes);
}

Tensor SessionBuffers::step_input(const SessionStorage& storage,
                                  const heddle_tensor_info& info) const {
  return make_tensor(checked_info(info, "step input"), arenas_[storage.device_slot].persistent,
                     storage.offset);
}

Tensor SessionBuffers::branch_input(const heddle_value& record,
                                    const SessionStorage& storage) const {
  const auto* fields = std::get_if<Record>(&record.content);
  const Value* given = fields == nullptr ? nullptr : fields->find(storage.input);
  if (given == nullptr)
    throw Error(Code::invalid_argument,
                cat("the model's input ", quote(storage.input), " is missing"));
  const Tensor& tensor = get_tensor(**given);
  const SessionBranch& branch = view_.plan.branches[storage.branch];
  if (branch.count == 0 || dense_bytes(tensor->info) == storage.bytes) return tensor;
  heddle_tensor_info items = tensor->info;
  items.shape[0] = branch.count;
  return view(tensor, items, branch.begin * items.stride[0]);
}

void add_expectation(const SessionView& view, std::vector<Expectation>& to,
                     std::uint32_t device_slot, const std::vector<FilePart>& parts,
                     UseOrder order) {
  DeviceState& state = view.state(device_slot);
  HostWeights* const host = state.host_weights();
  if (host == nullptr || parts.empty()) return;
  Timeline* const timeline = view.context.timeline;
  to.push_back(host->expect(parts, order, state.share_device(),
                            timeline == nullptr ? ReadWatch() : timeline->read_watch()));
}

}  // namespace heddle::engine
