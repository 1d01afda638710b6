// How a session is set up and left: see session_step.cpp for its steps.
#include "engine/session/prepared_session.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/session/session_trace.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/ops.h"

namespace heddle::engine {

void PreparedSession::set_up() {
  buffers_.set_up();
  for (std::uint32_t p = 0; p < view_.device_slot_count(); ++p)
    reached_.push_back(std::make_unique<Event>(view_.state(p).device()));
  for (int i = 0; i < 2; ++i) step_done_.push_back(std::make_unique<Event>(view_.home().device()));
  fill_addresses();
  prepare_pages();
  join_devices();  // the arenas may have been in use on their devices until here
  // Nobody waits for the others between these: what crosses has places of its own, and is awaited
  // by its readers' device.
  expected_pages_ = expect_pages({Phase::loop_invariant, Phase::precomputed}, UseOrder::once);
  StepTrace trace(view_, {Phase::loop_invariant, Phase::precomputed});
  for (const Phase phase : {Phase::loop_invariant, Phase::precomputed}) run(phase);
  trace.end();
  // What ranks of a group give one another in a step comes to where these phases have worked.
  if (!view_.plan.collectives.empty()) join_devices();
  expected_pages_ = expect_pages({Phase::per_step}, UseOrder::cyclic);
}

// Launches and copies that are still enqueued read what goes with this object.
PreparedSession::~PreparedSession() {
  try {
    // A session that is cancelled before the readers of a copy came leaves it behind nothing that
    // its devices wait for.
    for (const auto& copy_task : copy_tasks_)
      if (copy_task->is_under_way()) copy_task->await();
    if (pages_ != nullptr) pages_->leave();
    if (reached_.size() == view_.device_slot_count() && view_.device_slot_count() > 1)
      join_devices();
    buffers_.leave();
    for (auto& copy_task : copy_tasks_)
      view_.home().retain(std::shared_ptr<const void>(std::move(copy_task)));
    if (graphs_ != nullptr) view_.home().retain(std::shared_ptr<const void>(std::move(graphs_)));
  } catch (const std::exception&) {
    for (const SessionDeviceSlot& device_slot : view_.device_slots.device_slots)
      device_slot.state->settle();
  }
  buffers_.abandon_loading();
}

void PreparedSession::fill_addresses() {
  launches_.resize(view_.plan.ops.size());
  for (const SliceCopy& slice : view_.plan.slices) {
    const auto row = dtype_bytes(DType(slice.from.info.dtype), slice.from.info.stride[0]);
    slices_.push_back({make_launch(slice.copy), buffers_.address(slice.from), row});
  }
  for (const PlannedTransfer& t : view_.plan.transfers) copy_tasks_.push_back(make_copy_task(t));
}

const PreparedSession::Launch& PreparedSession::launch_of(
    std::uint32_t op, const std::function<void()>& before_loading) {
  std::optional<Launch>& launch = launches_[op];
  if (launch) return *launch;
  const PlannedOp& planned = view_.plan.ops[op];
  if (!buffers_.has_weights_of(planned)) {
    before_loading();
    buffers_.load_weights_of(planned);
  }
  return launch.emplace(make_launch(planned));
}

PreparedSession::Launch PreparedSession::make_launch(const PlannedOp& op) const {
  Launch launch;
  launch.kernel = op.kernel;
  launch.device_slot = op.device_slot;
  launch.views.resize(op.op.in.size() + op.op.out.size());
  launch.pointers.resize(launch.views.size(), nullptr);
  std::size_t i = 0;
  for (const auto* list : {&op.op.in, &op.op.out})
    for (const Operand& operand : *list) {
      if (operand.storage >= 0) {
        launch.views[i] = {operand.info, buffers_.address(operand)};
        launch.pointers[i] = &launch.views[i];  // a moved vector keeps its elements where they are
      }
      ++i;
    }
  // The attributes stay in the plan, which outlives the launch.
  launch.call = {sizeof(heddle_op_call),
                 op_name(op.op.op),
                 std::uint32_t(op.op.in.size()),
                 std::uint32_t(op.op.out.size()),
                 launch.pointers.data(),
                 launch.pointers.data() + op.op.in.size(),
                 op.op.attrs.data(),
                 std::uint32_t(op.op.attrs.size())};
  if (op.workspace >= 0) launch.workspace = buffers_.address({op.workspace, 0, {}});
  return launch;
}

std::unique_ptr<CopyTask> PreparedSession::make_copy_task(const PlannedTransfer& t) {
  if (t.way == PlannedTransfer::Way::kernel) {
    const PlannedOp copy{t.value.node, t.branch,
                         t.to,         {op_id(HEDDLE_OP_COPY), {}, {t.source}, {t.dest}},
                         t.kernel,     t.workspace};
    const auto launch = std::make_shared<Launch>(make_launch(copy));
    return std::make_unique<CopyTask>(
        view_.state(t.from), view_.state(t.to), t.bytes,
        [this, node = t.value.node, launch](Stream& stream) { enqueue(*launch, node, stream); });
  }
  const auto begin = dtype_bytes(DType(t.source.info.dtype), extent(t.source.info).begin);
  const std::uint64_t bytes = t.way == PlannedTransfer::Way::read ? 0 : t.bytes;
  return std::make_unique<CopyTask>(view_.state(t.from), &view_.state(t.to),
                                    buffers_.address(t.source) + begin,
                                    buffers_.address(t.dest) + begin, bytes);
}

void PreparedSession::prepare_pages() {
  if (view_.plan.pages.empty()) return;
  pages_ = std::make_unique<SessionPages>(view_.device_slots.host_memory);
  const std::vector<std::shared_ptr<const DeviceWeight>> lent = lent_weights();
  for (std::size_t p = 0; p < view_.plan.pages.size(); ++p) {
    const PlannedPage& page = view_.plan.pages[p];
    pages_->add(view_.state(page.device_slot),
                view_.weight_source(view_.plan.storages[page.weight]),
                buffers_.address({page.weight, 0, {}}), lent[p]);
  }
}

// A donor that cannot do it, for want of room or because it fails, is done without: host memory has
// everything.
std::vector<std::shared_ptr<const DeviceWeight>> PreparedSession::lent_weights() {
  std::vector<std::shared_ptr<const DeviceWeight>> lent(view_.plan.pages.size());
  for (std::size_t d = 0; d < view_.device_slots.donors.size(); ++d) {
    try {
      const std::vector<std::shared_ptr<const DeviceWeight>> here = lent_by(d);
      for (std::size_t p = 0; p < here.size(); ++p)
        if (here[p] != nullptr) lent[p] = here[p];
    } catch (const Error& error) {
      if (error.code() == Code::cancelled) throw;
      log(Level::info, cat(view_.device_slots.donors[d].offer.name,
                           " lends no room for weights: ", error.full()));
    }
  }
  return lent;
}

std::vector<std::shared_ptr<const DeviceWeight>> PreparedSession::lent_by(std::size_t donor) {
  WeightStore& store = *view_.device_slots.donors[donor].weights;
  std::vector<std::shared_ptr<const DeviceWeight>> here(view_.plan.pages.size());
  for (std::size_t p = 0; p < here.size(); ++p) {
    if (view_.plan.pages[p].donor != std::int32_t(donor)) continue;
    if (view_.context.cancelled())
      throw Error(Code::cancelled, "cancelled while weights were loaded");
    const SessionStorage& storage = view_.plan.storages[view_.plan.pages[p].weight];
    here[p] = store.get(view_.weight_source(storage), view_.context.model->checkpoint->identity(),
                        view_.weight_watch(storage));
  }
  store.finish(here);
  return here;
}

std::vector<Expectation> PreparedSession::expect_pages(std::initializer_list<Phase> phases,
                                                       UseOrder order) const {
  std::vector<Expectation> expectations;
  if (pages_ == nullptr) return expectations;
  std::vector<std::vector<FilePart>> wanted(view_.device_slot_count());
  // Those that a step brings for the next one come first, because something has brought them before
  // the first step, too; nobody brings them in the last.
  for (const bool for_next_step : {true, false}) {
    if (for_next_step && order == UseOrder::once) continue;
    for (const Phase phase : phases)
      for (const SessionAction& action : view_.plan.phases[int(phase)]) {
        if (action.kind != SessionAction::Kind::page_in || action.for_next_step != for_next_step)
          continue;
        if (!pages_->is_from_file(action.index)) continue;
        const PlannedPage& page = view_.plan.pages[action.index];
        std::ranges::move(file_parts(view_.weight_source(view_.plan.storages[page.weight])),
                          std::back_inserter(wanted[page.device_slot]));
      }
  }
  for (std::uint32_t p = 0; p < view_.device_slot_count(); ++p)
    add_expectation(view_, expectations, p, wanted[p], order);
  return expectations;
}

}  // namespace heddle::engine
