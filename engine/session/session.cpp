#include "engine/session/session.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/program/weight_slot.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/ops.h"

namespace heddle::core {

namespace {

// Files the launches of one block after another in the timeline, if there is one: a span begins at a block's first launch and
// ends before whatever is no launch, so that waiting for transfers is no part of it.
class BlockTrace {
 public:
  BlockTrace(Timeline* timeline, const SessionPlan& plan, const Graph& graph, const SessionPlaces& places)
      : timeline_(timeline), plan_(plan), graph_(graph), places_(places) {}

  void block(std::uint32_t index) { block_ = index; }
  void before_launch() {
    if (timeline_ == nullptr || begin_) return;
    begin_.emplace(state().device());
    state().record(*begin_);
  }
  void end() {
    if (!begin_) return;
    const SessionPlan::Block& block = plan_.blocks[block_];
    Event end(state().device());
    state().record(end);
    const std::string& id = graph_.nodes[block.node].id;
    timeline_->add(state(), StreamRow::compute, "block", plan_.lanes.size() == 1 ? id : cat(id, " lane ", block.lane), std::move(*begin_), std::move(end), 0);
    begin_.reset();
  }

 private:
  DeviceState& state() const { return *places_.places[plan_.blocks[block_].place].state; }

  Timeline* const timeline_;
  const SessionPlan& plan_;
  const Graph& graph_;
  const SessionPlaces& places_;
  std::uint32_t block_ = 0;
  std::optional<Event> begin_;
};

}  // namespace

Session::Session(Place place, SessionRequest request, std::function<bool()> cancelled, Timeline* timeline, Cancel cancel)
    : place_(std::move(place)),
      request_(std::move(request)),
      cancelled_(std::move(cancelled)),
      timeline_(timeline),
      cancel_(std::move(cancel)),
      model_(get_model(*request_.model)) {
  if (request_.constants.empty()) throw Error(Code::invalid_argument, "a session has at least one set of inputs");
  if (request_.step_count == 0) throw Error(Code::invalid_argument, "a session has at least one step");
}

Session::~Session() { leave_devices(); }

// Launches and copies that are still enqueued read what goes with this object.
void Session::leave_devices() {
  try {
    // A session that is cancelled before the readers of a copy came leaves it behind nothing that its devices wait for.
    for (const auto& crossing : crossings_)
      if (crossing->is_under_way()) crossing->await();
    if (pages_ != nullptr) pages_->leave();
    if (arenas_.size() == places_.places.size() && places_.places.size() > 1) join_places();
    for (std::size_t s = 0; s < externals_.size(); ++s)
      if (externals_[s]) state(plan_->storages[s].place).keep(externals_[s]);
    for (auto& crossing : crossings_) state(places_.home).keep(std::shared_ptr<const void>(std::move(crossing)));
    if (recordings_ != nullptr) state(places_.home).keep(std::shared_ptr<const void>(std::move(recordings_)));
  } catch (const std::exception&) {
    for (const SessionPlace& place : places_.places) place.state->settle();
  }
  crossings_.clear();
  recordings_.reset();
}

void Session::tear_down() {
  leave_devices();
  for (const SessionPlace& place : places_.places) place.state->synchronize();
  expected_pages_.clear();
  pages_.reset();
  crossings_.clear();
  slices_.clear();
  launches_.clear();
  externals_.clear();
  weights_.clear();
  arenas_.clear();
  reached_.clear();
  step_done_.clear();
  first_pages_are_here_ = false;
  steps_enqueued_ = 0;
  is_set_up_ = false;
  for (const SessionPlace& place : places_.places) place.state->trim();
}

// First the same again, because what others took may have come free; then with half of what is above the least, then with that.
void Session::set_limits(int attempt) {
  if (attempt == 1 || !plan_) return;
  limits_.assign(places_.places.size(), kNoLimit);
  for (std::uint32_t p = 0; p < limits_.size(); ++p) {
    if (places_.places[p].budget == kNoLimit || p >= plan_->needs.size()) continue;
    const std::uint64_t least = plan_->least_bytes(p), need = std::max(least, plan_->need_bytes(p));
    limits_[p] = attempt == 2 ? least + (need - least) / 2 : least;
  }
}

// Every device goes on only when all are here: memory that crosses devices may then be written again.
void Session::join_places() {
  if (places_.places.size() == 1) return;
  const std::uint32_t home = places_.home;
  for (std::uint32_t p = 0; p < places_.places.size(); ++p) {
    if (p == home) continue;
    state(p).record(*reached_[p]);
    state(home).with_stream([&](Stream& stream) { stream.wait_for(*reached_[p]); });
  }
  state(home).record(*reached_[home]);
  for (std::uint32_t p = 0; p < places_.places.size(); ++p)
    if (p != home) state(p).with_stream([&](Stream& stream) { stream.wait_for(*reached_[home]); });
}

void Session::launch(const Launch& launch, NodeIndex node) {
  state(launch.place).with_stream([&](Stream& stream) { enqueue(launch, node, stream); });
}

void Session::enqueue(const Launch& launch, NodeIndex node, Stream& stream) {
  const Device& here = stream.device();
  const CancelScope scope(stream, cancel_flag());
  heddle_status* const status = launch.kernel->launch(here.raw(), stream.raw(), &launch.call, launch.workspace);
  if (status == nullptr) return;
  try {
    here.check(status, launch.call.op);
  } catch (Error& error) {
    error.at(cat(model_->graph->nodes[node].id, " on ", here.name()));
    throw;
  }
}

// Not for the first step: kernels prepare themselves when they are launched for the first time.
void Session::record_step() {
  constexpr std::uint32_t kStepsWorthRecording = 4;
  if (!may_record_ || steps_enqueued_ != 1 || request_.step_count < kStepsWorthRecording) return;
  std::vector<const Device*> devices;
  for (const SessionPlace& place : places_.places) devices.push_back(&place.state->device());
  const auto grain = timeline_ == nullptr ? SessionRecordings::Grain::step : SessionRecordings::Grain::block;
  recordings_ = std::make_unique<SessionRecordings>(*plan_, devices, grain, [&](std::uint32_t op, Stream& stream) {
    enqueue(launches_[op], plan_->ops[op].node, stream);
  });
}

void Session::run(Rate phase, bool is_last) {
  BlockTrace trace(timeline_, *plan_, *model_->graph, places_);
  const std::vector<SessionAction>& actions = plan_->phases[int(phase)];
  for (std::uint32_t i = 0; i < actions.size(); ++i) {
    if (phase == Rate::step && recordings_ != nullptr && recordings_->holds(i)) {
      const SessionRecordings::Stretch* const stretch = recordings_->at(i);
      if (stretch == nullptr) continue;  // it was enqueued with the first
      trace.before_launch();
      state(stretch->place).with_stream([&](Stream& stream) {
        const CancelScope scope(stream, cancel_flag());
        stream.replay(*stretch->recording);
      });
      continue;
    }
    const SessionAction& action = actions[i];
    if (action.kind != SessionAction::Kind::launch && action.kind != SessionAction::Kind::page_in) trace.end();
    switch (action.kind) {
      case SessionAction::Kind::block:
        if (cancelled_()) throw Error(Code::cancelled, "cancelled");
        trace.block(action.index);
        break;
      case SessionAction::Kind::launch:
        trace.before_launch();
        launch(launches_[action.index], plan_->ops[action.index].node);
        break;
      case SessionAction::Kind::transfer: crossings_[action.index]->start(transfer_watch(plan_->transfers[action.index])); break;
      case SessionAction::Kind::await: crossings_[action.index]->await(); break;
      case SessionAction::Kind::page_in:
        if (!action.for_next_step || !is_last) pages_->page_in(action.index, weight_watch(plan_->storages[plan_->pages[action.index].weight]));
        break;
      case SessionAction::Kind::await_page: pages_->await(action.index); break;
    }
  }
  trace.end();
}

WorkWatch Session::transfer_watch(const PlannedTransfer& transfer) const {
  if (timeline_ == nullptr) return {};
  const Graph& graph = *model_->graph;
  const bool is_input = transfer.value.node == kGraphInputs;
  const std::string value = is_input ? graph.inputs[transfer.value.port].name : graph.nodes[transfer.value.node].id;
  return timeline_->watch("transfer", cat(value, " to ", state(transfer.to).device().name()));
}

WorkWatch Session::weight_watch(const SessionStorage& storage) const {
  if (timeline_ == nullptr) return {};
  const Node& node = model_->graph->nodes[storage.node];
  return timeline_->watch("page-in", cat(node.id, ".", weight_name(node, storage.slot)));
}

// Steps may come in any order and again: whoever finds the first pages missing brings them.
void Session::bring_first_pages() {
  if (pages_ == nullptr || first_pages_are_here_) return;
  for (const std::uint32_t page : plan_->first_pages) pages_->page_in(page, weight_watch(plan_->storages[plan_->pages[page].weight]));
}

void Session::write_step_inputs(std::span<const heddle_value* const> sets) {
  DeviceState& home = state(places_.home);
  for (const SessionStorage& storage : plan_->storages) {
    if (storage.kind != SessionStorage::Kind::step_input) continue;
    const Tensor tensor = lane_input(*sets[plan_->lanes[storage.lane].set], storage);
    heddle_tensor_info place = tensor->info;
    std::fill(std::begin(place.stride), std::end(place.stride), 0);
    if (dense_bytes(place) != storage.bytes)
      throw Error(Code::invalid_argument, cat("the model's input ", quote(storage.input), " is ", describe(tensor->info), ": its shape differs from the first step's"));
    const Tensor slot = make_tensor(checked_info(place, "step input"), arenas_[places_.home].persistent, storage.offset);
    heddle_tensor* const in[] = {tensor.get()};
    heddle_tensor* const out[] = {slot.get()};
    home.op(op_id(HEDDLE_OP_COPY), in, out, {}, cancel_flag());
  }
}

std::vector<Value> Session::step(std::uint32_t index, std::span<const heddle_value* const> sets) {
  if (index >= request_.step_count)
    throw Error(Code::invalid_argument, cat("step ", index, " of a session of ", request_.step_count, " steps"));
  if (sets.size() != request_.constants.size())
    throw Error(Code::invalid_argument, cat("step ", index, ": ", sets.size(), " sets of inputs, the session was opened with ", request_.constants.size()));
  if (cancelled_()) throw Error(Code::cancelled, "cancelled");
  constexpr int kAttempts = 4;
  for (int attempt = 1;; ++attempt) {
    try {
      return try_step(index, sets);
    } catch (Error& error) {
      // What makes room has been asked already. A plan that not even the least would do for has no smaller one.
      const bool has_plan = plan_.has_value();
      if (error.code() != Code::out_of_memory || attempt == kAttempts || !has_plan || cancelled_()) {
        if (request_.step_count > 1) error.at(cat("step ", index + 1));
        throw;
      }
    }
    // The step's inputs are still there, and nothing that it made has left it: it begins anew, without what replays may take for
    // themselves.
    if (recordings_ != nullptr) may_record_ = false;
    tear_down();
    set_limits(attempt);
  }
}

std::vector<Value> Session::try_step(std::uint32_t index, std::span<const heddle_value* const> sets) {
  if (!is_set_up_) {
    if (plan_) tear_down();  // of a setup that has failed half-way
    prepare(sets);
  }
  // At most one step beyond the running one: wait for the step before the previous one.
  Event& done = *step_done_[index % 2];
  done.wait();
  write_step_inputs(sets);
  for (std::size_t s = 0; s < slices_.size(); ++s) {
    Slice& slice = slices_[s];
    slice.launch.views[0].data = slice.base + slice.row_bytes * std::int64_t(index);
    launch(slice.launch, plan_->slices[s].copy.node);
  }
  bring_first_pages();
  const bool is_last = index + 1 == request_.step_count;
  if (is_last) expected_pages_ = expect_pages({Rate::step}, UseOrder::once);
  first_pages_are_here_ = false;
  record_step();
  run(Rate::step, is_last);
  ++steps_enqueued_;
  first_pages_are_here_ = !is_last;
  std::vector<Value> results = collect_outputs();
  join_places();
  state(places_.home).record(done);
  return results;
}

// The output of a lane where the step left it.
Tensor Session::output_tensor(const SessionPlan::Output& output) const {
  const SessionStorage& storage = plan_->storages[output.value.storage];
  if (storage.kind == SessionStorage::Kind::constant || storage.kind == SessionStorage::Kind::schedule) {
    const Tensor& external = externals_[output.value.storage];
    return make_tensor(output.value.info, external->storage, external->offset_bytes + output.value.offset_bytes);
  }
  const Arenas& arenas = arenas_[storage.place];
  return make_tensor(output.value.info, storage.kind == SessionStorage::Kind::scratch ? arenas.scratch : arenas.persistent,
                     storage.offset + output.value.offset_bytes);
}

// Copied out, because the next step writes the same places; the items of a split batch come together again.
std::vector<Value> Session::collect_outputs() {
  DeviceState& home = state(places_.home);
  std::vector<std::vector<std::pair<std::string, Value>>> fields(request_.constants.size());
  std::map<std::pair<std::uint32_t, std::string_view>, Tensor> whole;  // by set and name
  for (const SessionPlan::Output& output : plan_->outputs) {
    const SessionLane& lane = plan_->lanes[output.lane];
    Tensor& out = whole[{lane.set, output.name}];
    heddle_tensor_info info = output.value.info;
    std::fill(std::begin(info.stride), std::end(info.stride), 0);
    if (!out) {
      heddle_tensor_info all = info;
      if (lane.count > 0) {
        all.shape[0] = 0;
        for (const SessionLane& other : plan_->lanes)
          if (other.set == lane.set) all.shape[0] += other.count;
      }
      out = home.make(all);
      fields[lane.set].emplace_back(output.name, make_value(out));
    }
    const Tensor inside = output_tensor(output);
    const Tensor items = lane.count == 0 ? out : view(out, checked_info(info, "output"), lane.begin * out->info.stride[0]);
    heddle_tensor* const from[] = {inside.get()};
    heddle_tensor* const to[] = {items.get()};
    home.op(op_id(HEDDLE_OP_COPY), from, to, {}, cancel_flag());
  }
  std::vector<Value> results;
  for (auto& f : fields) results.push_back(make_record(std::move(f)));
  return results;
}

}  // namespace heddle::core
