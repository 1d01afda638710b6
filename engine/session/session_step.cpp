// A step of a session that is set up: enqueues what the plan says.
#include <algorithm>
#include <map>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/program/weight_sources.h"
#include "engine/session/prepared_session.h"
#include "engine/session/session_trace.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/ops.h"

namespace heddle::engine {

std::vector<Value> PreparedSession::step(std::uint32_t index,
                                         std::span<const heddle_value* const> sets,
                                         bool may_record) {
  // At most one step beyond the running one: wait for the step before the previous one.
  Event& done = *step_done_[index % 2];
  done.wait();
  write_step_inputs(sets);
  copy_slices(index);
  bring_first_pages();
  const bool is_last = index + 1 == view_.context.request.step_count;
  if (is_last) expected_pages_ = expect_pages({Phase::per_step}, UseOrder::once);
  first_pages_are_here_ = false;
  StepTrace trace(view_, {Phase::per_step});
  run(Phase::per_step, is_last);
  trace.end();
  ++steps_enqueued_;
  first_pages_are_here_ = !is_last;
  std::vector<Value> results = collect_outputs();
  join_devices();
  view_.home().record(done);
  if (view_.device_slots.is_stage) set_written(results);
  if (may_record) capture_step();  // beside the step
  buffers_.finish_loading();
  return results;
}

void PreparedSession::write_step_inputs(std::span<const heddle_value* const> sets) {
  for (const SessionStorage& storage : view_.plan.storages) {
    if (storage.kind != SessionStorage::Kind::step_input) continue;
    const Tensor tensor =
        buffers_.branch_input(*sets[view_.plan.branches[storage.branch].set], storage);
    heddle_tensor_info dense = tensor->info;
    std::fill(std::begin(dense.stride), std::end(dense.stride), 0);
    if (dense_bytes(dense) != storage.bytes)
      throw Error(Code::invalid_argument,
                  cat("the model's input ", quote(storage.input), " is ", describe(tensor->info),
                      ": its shape or type differs from the first step's. A step takes what the "
                      "first one took"));
    const Tensor slot = buffers_.step_input(storage, dense);
    heddle_tensor* const in[] = {tensor.get()};
    heddle_tensor* const out[] = {slot.get()};
    view_.home().op(op_id(HEDDLE_OP_COPY), in, out, {}, view_.context.cancel_flag());
  }
}

void PreparedSession::copy_slices(std::uint32_t index) {
  for (std::size_t s = 0; s < slices_.size(); ++s) {
    Slice& slice = slices_[s];
    slice.launch.views[0].data = slice.base + slice.row_bytes * std::int64_t(index);
    launch(slice.launch, view_.plan.slices[s].copy.node);
  }
}

// Steps may come in any order and again: whoever finds the first pages missing brings them.
void PreparedSession::bring_first_pages() {
  if (pages_ == nullptr || first_pages_are_here_) return;
  for (const std::uint32_t page : view_.plan.first_pages)
    pages_->page_in(page, view_.weight_watch(view_.plan.storages[view_.plan.pages[page].weight]));
}

// Behind the first step: kernels prepare themselves when they are launched for the first time.
void PreparedSession::capture_step() {
  constexpr std::uint32_t kStepsWorthCapturing = 4;
  if (steps_enqueued_ != 1 || view_.context.request.step_count < kStepsWorthCapturing) return;
  std::vector<const Device*> devices;
  for (const SessionDeviceSlot& device_slot : view_.device_slots.device_slots)
    devices.push_back(&device_slot.state->device());
  const auto grain =
      shows_blocks(view_.context) ? SessionGraphs::Grain::block : SessionGraphs::Grain::step;
  graphs_ = std::make_unique<SessionGraphs>(
      view_.plan, devices, grain,
      [&](std::uint32_t op, Stream& stream) {
        enqueue(*launches_[op], view_.plan.ops[op].node, stream);
      },
      [&](std::uint32_t device_slot, std::uint64_t bytes) {
        Ledger& ledger = view_.state(device_slot).ledger();
        const std::string name = weights_name(*view_.context.model);
        TakenBytes taken = ledger.take(bytes, cat("captured graphs of ", name));
        taken.tag({MemoryKind::captured_graphs, ledger.owner(name)});
        return taken;
      });
}

void PreparedSession::run(Phase phase, bool is_last) {
  BlockTrace trace(view_);
  const std::vector<SessionAction>& actions = view_.plan.phases[int(phase)];
  for (std::uint32_t i = 0; i < actions.size(); ++i) {
    if (phase == Phase::per_step && graphs_ != nullptr && graphs_->holds(i)) {
      const SessionGraphs::Segment* const segment = graphs_->at(i);
      if (segment == nullptr) continue;  // it was enqueued with the first
      trace.before_launch();
      replay(*segment);
      continue;
    }
    const auto& [kind, index, for_next_step] = actions[i];
    if (kind != SessionAction::Kind::launch && kind != SessionAction::Kind::page_in) trace.end();
    switch (kind) {
      case SessionAction::Kind::block:
        if (view_.context.cancelled()) throw Error(Code::cancelled, "cancelled");
        trace.block(index);
        break;
      case SessionAction::Kind::launch: {
        const Launch& next = launch_of(index, [&] { trace.end(); });
        trace.before_launch();
        launch(next, view_.plan.ops[index].node);
        break;
      }
      case SessionAction::Kind::transfer:
        copy_tasks_[index]->start(view_.transfer_watch(view_.plan.transfers[index]));
        break;
      case SessionAction::Kind::await:
        copy_tasks_[index]->await();
        break;
      case SessionAction::Kind::page_in:
        if (!for_next_step || !is_last)
          pages_->page_in(index,
                          view_.weight_watch(view_.plan.storages[view_.plan.pages[index].weight]));
        break;
      case SessionAction::Kind::await_page:
        pages_->await(index);
        break;
    }
  }
  trace.end();
}

void PreparedSession::launch(const Launch& launch, NodeIndex node) {
  view_.state(launch.device_slot).with_stream([&](Stream& stream) {
    enqueue(launch, node, stream);
  });
}

void PreparedSession::enqueue(const Launch& launch, NodeIndex node, Stream& stream) {
  const Device& here = stream.device();
  const CancelScope scope(stream, view_.context.cancel_flag());
  heddle_status* const status =
      launch.kernel->launch(here.raw(), stream.raw(), &launch.call, launch.workspace);
  if (status == nullptr) return;
  try {
    here.check(status, launch.call.op);
  } catch (Error& error) {
    error.at(cat(view_.graph().nodes[node].id, " on ", here.name()));
    throw;
  }
}

void PreparedSession::replay(const SessionGraphs::Segment& segment) {
  view_.state(segment.device_slot).with_stream([&](Stream& stream) {
    const CancelScope scope(stream, view_.context.cancel_flag());
    stream.replay(*segment.captured_graph);
  });
}

// Every device goes on only when all are here: memory that crosses devices may then be written
// again.
void PreparedSession::join_devices() {
  if (view_.device_slot_count() == 1) return;
  const std::uint32_t home = view_.device_slots.home;
  for (std::uint32_t p = 0; p < view_.device_slot_count(); ++p) {
    if (p == home) continue;
    view_.state(p).record(*reached_[p]);
    view_.home().with_stream([&](Stream& stream) { stream.wait_for(*reached_[p]); });
  }
  view_.home().record(*reached_[home]);
  for (std::uint32_t p = 0; p < view_.device_slot_count(); ++p)
    if (p != home)
      view_.state(p).with_stream([&](Stream& stream) { stream.wait_for(*reached_[home]); });
}

// Copied out, because the next step writes the same places; the items of a split batch come
// together again.
std::vector<Value> PreparedSession::collect_outputs() {
  DeviceState& home = view_.home();
  std::vector<std::vector<std::pair<std::string, Value>>> fields(
      view_.context.request.constants.size());
  std::map<std::pair<std::uint32_t, std::string_view>, Tensor> whole;  // by set and name
  for (const SessionPlan::Output& output : view_.plan.outputs) {
    const SessionBranch& branch = view_.plan.branches[output.branch];
    Tensor& out = whole[{branch.set, output.name}];
    if (!out) {
      out = home.make(whole_output(output));
      fields[branch.set].emplace_back(output.name, make_value(out));
    }
    heddle_tensor_info info = output.value.info;
    std::fill(std::begin(info.stride), std::end(info.stride), 0);
    const Tensor inside = buffers_.output(output);
    const Tensor items = branch.count == 0 ? out
                                           : view(out, checked_info(info, "output"),
                                                  branch.begin * out->info.stride[0]);
    heddle_tensor* const from[] = {inside.get()};
    heddle_tensor* const to[] = {items.get()};
    home.op(op_id(HEDDLE_OP_COPY), from, to, {}, view_.context.cancel_flag());
  }
  std::vector<Value> results;
  for (auto& f : fields) results.push_back(make_record(std::move(f)));
  return results;
}

// Readers on other devices wait for this step, and not for what comes behind it here.
void PreparedSession::set_written(const std::vector<Value>& results) {
  const auto written = std::make_shared<Event>(view_.home().device());
  view_.home().record(*written);
  for (const Value& result : results)
    for (const auto& [name, value] : std::get<Record>(result->content).fields)
      if (auto* memory = dynamic_cast<DeviceMemory*>(get_tensor(*value)->storage.get()))
        memory->set_written(written);
}

// Of all branches of its set.
heddle_tensor_info PreparedSession::whole_output(const SessionPlan::Output& output) const {
  heddle_tensor_info info = output.value.info;
  std::fill(std::begin(info.stride), std::end(info.stride), 0);
  const SessionBranch& branch = view_.plan.branches[output.branch];
  if (branch.count == 0) return info;
  info.shape[0] = 0;
  for (const SessionBranch& other : view_.plan.branches)
    if (other.set == branch.set) info.shape[0] += other.count;
  return info;
}

}  // namespace heddle::engine
