// How a session is made: its plan, its weights, and every address that a step will use.
#include <algorithm>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/program/session_spec.h"
#include "engine/session/session.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/ops.h"

namespace heddle::core {

namespace {

SessionSpec::Infos infos_of(const heddle_value* record, std::string_view what) {
  SessionSpec::Infos infos;
  if (record == nullptr || kind_of(*record) == HEDDLE_KIND_NONE) return infos;
  const auto* fields = std::get_if<Record>(&record->content);
  if (fields == nullptr) throw Error(Code::invalid_argument, cat("the ", what, " of a model are ", describe(*record), ", not a record"));
  for (const auto& [name, value] : fields->fields) {
    const auto* tensor = std::get_if<Tensor>(&value->content);
    if (tensor == nullptr) throw Error(Code::invalid_argument, cat("the model's input ", quote(name), " is ", describe(*value), ", not a tensor"));
    infos.emplace(name, (*tensor)->info);
  }
  return infos;
}

}  // namespace

CallSpec Session::call_spec(std::span<const heddle_value* const> sets) const {
  CallSpec call;
  call.model = request_.model;
  call.step_count = request_.step_count;
  call.schedule = infos_of(request_.schedule.get(), "scheduled inputs");
  for (std::size_t i = 0; i < request_.constants.size(); ++i)
    call.sets.push_back({infos_of(request_.constants[i].get(), "constants"), infos_of(sets[i], "step inputs")});
  return call;
}

void Session::prepare(std::span<const heddle_value* const> sets) {
  const CallSpec call = call_spec(sets);
  places_ = place_(*model_, call);
  for (std::size_t p = 0; p < std::min(limits_.size(), places_.places.size()); ++p) {
    SessionPlace& place = places_.places[p];
    place.budget = std::min(place.budget, limits_[p]);
    place.spare = std::min(place.spare, limits_[p] - place.budget);
  }
  plan_.reset();
  try {
    make_plan_with_spare(call);
  } catch (const Error& error) {
    if (error.code() != Code::out_of_memory) throw;
    // The plan knows what it lacks, the ledgers who has it.
    std::string text = error.what();
    for (const SessionPlace& place : places_.places)
      if (place.budget != kNoLimit) text += cat(" ", place.state->device().name(), " has a ", place.state->ledger().figures(), ".");
    throw Error(Code::out_of_memory, text);
  }
  // Which set a step input belongs to is not asked again, so externals may go by the records given now.
  bring_externals();
  std::vector<Reservation> claims = reserve();
  load_weights(claims);
  const std::string name = weights_name(*model_), what = cat("the ring of ", name), arena = cat("the activations of ", name);
  for (std::uint32_t p = 0; p < places_.places.size(); ++p) {
    const SessionPlan::Arenas& bytes = plan_->arenas[p];
    const std::uint32_t owner = state(p).ledger().owner(name);
    const PieceUse activations{{Held::activations, owner}, arena, &claims[p]};
    arenas_.push_back({state(p).allocate(bytes.persistent_bytes, activations), state(p).allocate(bytes.scratch_bytes, activations),
                       bytes.ring_bytes == 0 ? nullptr : state(p).allocate(bytes.ring_bytes, {{Held::ring, owner}, what, &claims[p]})});
    reached_.push_back(std::make_unique<Event>(state(p).device()));
  }
  for (int i = 0; i < 2; ++i) step_done_.push_back(std::make_unique<Event>(state(places_.home).device()));
  fill_addresses();
  prepare_pages();
  join_places();  // the arenas may have been in use on their devices until here
  // Nobody waits for the others between these: what crosses has places of its own, and is awaited by its readers' device.
  expected_pages_ = expect_pages({Rate::constant, Rate::scheduled}, UseOrder::once);
  for (const Rate phase : {Rate::constant, Rate::scheduled}) run(phase);
  // What members of a group give one another in a step comes to where these phases have worked.
  if (!plan_->collectives.empty()) join_places();
  expected_pages_ = expect_pages({Rate::step}, UseOrder::cyclic);
  is_set_up_ = true;
}

// Before anything is taken: else two sessions that come at once would each get half of what it needs. What of the model is there
// already it shares.
std::vector<Reservation> Session::reserve() const {
  const std::string name = weights_name(*model_);
  std::vector<Reservation> claims;
  for (std::uint32_t p = 0; p < places_.places.size(); ++p) {
    const SessionPlan::Arenas& arenas = plan_->arenas[p];
    const Pool& pool = state(p).pool();
    std::uint64_t weights = 0, there = 0;
    for (const SessionStorage& storage : plan_->storages)
      if (storage.kind == SessionStorage::Kind::weight && storage.place == p) weights += pool.rounded(storage.bytes);
    for (const ModelWeights& each : places_.places[p].weights->models())
      if (each.model == model_->identity) there += each.bytes;
    const std::uint64_t more = weights - std::min(weights, there);
    const std::uint64_t rooms = pool.rounded(arenas.persistent_bytes) + pool.rounded(arenas.scratch_bytes) + (arenas.ring_bytes == 0 ? 0 : pool.rounded(arenas.ring_bytes));
    claims.push_back(state(p).ledger().reserve(more + rooms, cat("a session of ", name, " (", format_bytes(more), " of weights)")));
  }
  return claims;
}

void Session::make_plan_with_spare(const CallSpec& call) {
  try {
    return make_plan(call);
  } catch (const Error& error) {
    const bool has_spare = std::ranges::any_of(places_.places, [](const SessionPlace& place) { return place.spare > 0; });
    if (error.code() != Code::out_of_memory || !has_spare) throw;
  }
  for (SessionPlace& place : places_.places) place.budget += std::exchange(place.spare, 0);
  make_plan(call);
}

void Session::make_plan(const CallSpec& call) {
  SessionSetup setup{call, places_.placement};
  setup.home = places_.home;
  for (const SessionPlace& place : places_.places) {
    const Device& device = place.state->device();
    setup.devices.push_back({device.name(), device.compute(), device.host_visible(), place.budget, place.rates});
  }
  setup.are_peers = [&](std::uint32_t a, std::uint32_t b) { return state(a).device().link(&state(b).device()).kind == HEDDLE_LINK_PEER; };
  for (const SessionDonor& donor : places_.donors) setup.donors.push_back(donor.offer);
  setup.pinned_bytes = places_.pinned_bytes;
  setup.form = [&](std::uint32_t place, const WeightSource& source) { return places_.places[place].weights->form(source); };
  const SessionSpec spec = session_spec(std::move(setup));
  plan_ = plan_session(*model_->graph, spec, [&](std::uint32_t place, const heddle_op_call& call) {
    const heddle_kernel& kernel = state(place).kernels().choose(state(place).device(), call);
    return ChosenKernel{&kernel, kernel.workspace == nullptr ? 0 : kernel.workspace(state(place).device().raw(), &call)};
  });
}

WeightSource Session::weight_source(const SessionStorage& storage) const {
  const Node& node = model_->graph->nodes[storage.node];
  return numbered_source(weight_sources(*model_, node), node, storage.slot,
                         places_.placement.shares, storage.member)
      .value();
}

void Session::prepare_pages() {
  if (plan_->pages.empty()) return;
  pages_ = std::make_unique<SessionPages>(places_.host_memory);
  const std::vector<std::shared_ptr<const DeviceWeight>> lent = lent_weights();
  for (std::size_t p = 0; p < plan_->pages.size(); ++p) {
    const PlannedPage& page = plan_->pages[p];
    pages_->add(state(page.place), weight_source(plan_->storages[page.weight]), address({page.weight, 0, {}}), lent[p]);
  }
}

// A donor that cannot do it, for want of room or because it fails, is done without: host memory has everything.
std::vector<std::shared_ptr<const DeviceWeight>> Session::lent_weights() {
  std::vector<std::shared_ptr<const DeviceWeight>> lent(plan_->pages.size());
  for (std::size_t d = 0; d < places_.donors.size(); ++d) {
    WeightStore& store = *places_.donors[d].weights;
    std::vector<std::shared_ptr<const DeviceWeight>> here(lent.size());
    try {
      for (std::size_t p = 0; p < here.size(); ++p) {
        if (plan_->pages[p].donor != std::int32_t(d)) continue;
        if (cancelled_()) throw Error(Code::cancelled, "cancelled while weights were loaded");
        const SessionStorage& storage = plan_->storages[plan_->pages[p].weight];
        here[p] = store.get(weight_source(storage), model_->checkpoint->identity(), weight_watch(storage));
      }
      store.finish(here);
    } catch (const Error& error) {
      if (error.code() == Code::cancelled) throw;
      log(Level::info, cat(places_.donors[d].offer.name, " lends no room for weights: ", error.full()));
      continue;
    }
    for (std::size_t p = 0; p < here.size(); ++p)
      if (here[p] != nullptr) lent[p] = here[p];
  }
  return lent;
}

void Session::load_weights(std::vector<Reservation>& claims) {
  const std::vector<Expectation> expected = expect_weights();
  weights_.resize(plan_->storages.size());
  const std::string name = weights_name(*model_);
  for (std::size_t s = 0; s < plan_->storages.size(); ++s) {
    if (cancelled_()) throw Error(Code::cancelled, "cancelled while weights were loaded");
    const SessionStorage& storage = plan_->storages[s];
    if (storage.kind != SessionStorage::Kind::weight) continue;
    const WeightUser user{model_->identity, name, std::uint32_t(s)};
    weights_[s] = places_.places[storage.place].weights->get(weight_source(storage), model_->checkpoint->identity(), weight_watch(storage), user,
                                                             &claims[storage.place]);
  }
  for (std::uint32_t p = 0; p < places_.places.size(); ++p) {
    std::vector<std::shared_ptr<const DeviceWeight>> here;
    for (std::size_t s = 0; s < weights_.size(); ++s)
      if (weights_[s] != nullptr && plan_->storages[s].place == p) here.push_back(weights_[s]);
    places_.places[p].weights->finish(here);
  }
}

Tensor Session::lane_input(const heddle_value& record, const SessionStorage& storage) const {
  const auto* fields = std::get_if<Record>(&record.content);
  const Value* given = fields == nullptr ? nullptr : fields->find(storage.input);
  if (given == nullptr) throw Error(Code::invalid_argument, cat("the model's input ", quote(storage.input), " is missing"));
  const Tensor& tensor = get_tensor(**given);
  const SessionLane& lane = plan_->lanes[storage.lane];
  if (lane.count == 0 || dense_bytes(tensor->info) == storage.bytes) return tensor;
  heddle_tensor_info items = tensor->info;
  items.shape[0] = lane.count;
  return view(tensor, items, lane.begin * items.stride[0]);
}

void Session::bring_externals() {
  externals_.resize(plan_->storages.size());
  // The sets may share a tensor. What was brought is held as long as its address tells it from others: a lane's items are a view
  // that nobody else holds.
  std::map<std::pair<const heddle_tensor*, std::uint32_t>, std::pair<Tensor, Tensor>> brought;
  for (std::size_t s = 0; s < plan_->storages.size(); ++s) {
    const SessionStorage& storage = plan_->storages[s];
    const bool is_schedule = storage.kind == SessionStorage::Kind::schedule;
    if (!is_schedule && storage.kind != SessionStorage::Kind::constant) continue;
    const Tensor given = lane_input(is_schedule ? *request_.schedule : *request_.constants[plan_->lanes[storage.lane].set], storage);
    auto& [held, here] = brought[{given.get(), storage.place}];
    if (!held) {
      WorkWatch watch;
      if (timeline_ != nullptr) watch = timeline_->watch("transfer", cat(storage.input, " to ", state(storage.place).device().name()));
      held = given;
      here = Arrival(given, &state(storage.place), watch).await();
    }
    externals_[s] = here;
  }
}

void Session::fill_addresses() {
  launches_.reserve(plan_->ops.size());
  for (const PlannedOp& op : plan_->ops) launches_.push_back(make_launch(op));
  for (const SliceCopy& slice : plan_->slices) {
    const auto row = dtype_bytes(DType(slice.from.info.dtype), slice.from.info.stride[0]);
    slices_.push_back({make_launch(slice.copy), address(slice.from), row});
  }
  for (const PlannedTransfer& t : plan_->transfers) crossings_.push_back(make_crossing(t));
}

std::unique_ptr<Crossing> Session::make_crossing(const PlannedTransfer& t) {
  if (t.way == PlannedTransfer::Way::kernel) {
    const PlannedOp copy{t.value.node, t.lane, t.to, {op_id(HEDDLE_OP_COPY), {}, {t.source}, {t.dest}}, t.kernel, t.workspace};
    return std::make_unique<Crossing>(state(t.from), state(t.to), t.bytes,
                                      [this, node = t.value.node, launch = std::make_shared<Launch>(make_launch(copy))](Stream& stream) { enqueue(*launch, node, stream); });
  }
  const auto begin = dtype_bytes(DType(t.source.info.dtype), extent(t.source.info).begin);
  const std::uint64_t bytes = t.way == PlannedTransfer::Way::read ? 0 : t.bytes;
  return std::make_unique<Crossing>(state(t.from), &state(t.to), address(t.source) + begin, address(t.dest) + begin, bytes);
}

std::byte* Session::address(const Operand& operand) const {
  const SessionStorage& storage = plan_->storages[operand.storage];
  switch (storage.kind) {
    case SessionStorage::Kind::persistent:
    case SessionStorage::Kind::step_input: return arenas_[storage.place].persistent->data() + storage.offset + operand.offset_bytes;
    case SessionStorage::Kind::scratch: return arenas_[storage.place].scratch->data() + storage.offset + operand.offset_bytes;
    case SessionStorage::Kind::page: return arenas_[storage.place].ring->data() + storage.offset + operand.offset_bytes;
    case SessionStorage::Kind::weight: return weights_[operand.storage]->memory->data() + operand.offset_bytes;
    default: return externals_[operand.storage]->data() + operand.offset_bytes;
  }
}

Session::Launch Session::make_launch(const PlannedOp& op) const {
  Launch launch;
  launch.kernel = op.kernel;
  launch.place = op.place;
  launch.views.resize(op.op.in.size() + op.op.out.size());
  launch.pointers.resize(launch.views.size(), nullptr);
  std::size_t i = 0;
  for (const auto* list : {&op.op.in, &op.op.out})
    for (const Operand& operand : *list) {
      if (operand.storage >= 0) {
        launch.views[i] = {operand.info, address(operand)};
        launch.pointers[i] = &launch.views[i];  // a moved vector keeps its elements where they are
      }
      ++i;
    }
  // The attributes stay in the plan, which outlives the launch.
  launch.call = {sizeof(heddle_op_call),      op_name(op.op.op), std::uint32_t(op.op.in.size()), std::uint32_t(op.op.out.size()), launch.pointers.data(),
                 launch.pointers.data() + op.op.in.size(), op.op.attrs.data(), std::uint32_t(op.op.attrs.size())};
  if (op.workspace >= 0) launch.workspace = address({op.workspace, 0, {}});
  return launch;
}

}  // namespace heddle::core
