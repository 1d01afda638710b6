#include "engine/session/session_buffers.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/program/weight_sources.h"
#include "engine/tensor/call.h"
#include "engine/tensor/shape.h"
#include "engine/transfer/arrival.h"

namespace heddle::core {

void SessionBuffers::set_up() {
  // Which set a step input belongs to is not asked again, so externals may go by the records given
  // now.
  bring_externals();
  std::vector<Reservation> claims = reserve();
  load_weights(claims);
  allocate_arenas(claims);
}

void SessionBuffers::leave() {
  for (std::size_t s = 0; s < externals_.size(); ++s)
    if (externals_[s]) view_.state(view_.plan.storages[s].place).keep(externals_[s]);
}

void SessionBuffers::bring_externals() {
  const SessionContext& context = view_.context;
  externals_.resize(view_.plan.storages.size());
  // The sets may share a tensor. What was brought is held as long as its address tells it from
  // others: a lane's items are a view that nobody else holds.
  std::map<std::pair<const heddle_tensor*, std::uint32_t>, std::pair<Tensor, Tensor>> brought;
  for (std::size_t s = 0; s < view_.plan.storages.size(); ++s) {
    const SessionStorage& storage = view_.plan.storages[s];
    const bool is_schedule = storage.kind == SessionStorage::Kind::schedule;
    if (!is_schedule && storage.kind != SessionStorage::Kind::constant) continue;
    const Tensor given =
        lane_input(is_schedule ? *context.request.schedule
                               : *context.request.constants[view_.plan.lanes[storage.lane].set],
                   storage);
    auto& [held, here] = brought[{given.get(), storage.place}];
    if (!held) {
      DeviceState& state = view_.state(storage.place);
      WorkWatch watch;
      if (context.timeline != nullptr)
        watch =
            context.timeline->watch("transfer", cat(storage.input, " to ", state.device().name()));
      held = given;
      here = Arrival(given, &state, watch).await();
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
  for (std::uint32_t p = 0; p < view_.place_count(); ++p) {
    const SessionPlan::Arenas& arenas = view_.plan.arenas[p];
    const Pool& pool = view_.state(p).pool();
    std::uint64_t weights = 0, there = 0;
    for (const SessionStorage& storage : view_.plan.storages)
      if (storage.kind == SessionStorage::Kind::weight && storage.place == p)
        weights += pool.rounded(storage.bytes);
    for (const ModelWeights& each : view_.places.places[p].weights->models())
      if (each.model == model.identity) there += each.bytes;
    const std::uint64_t more = weights - std::min(weights, there);
    const std::uint64_t rooms = pool.rounded(arenas.persistent_bytes) +
                                pool.rounded(arenas.scratch_bytes) +
                                (arenas.ring_bytes == 0 ? 0 : pool.rounded(arenas.ring_bytes));
    claims.push_back(view_.state(p).ledger().reserve(
        more + rooms, cat("a session of ", name, " (", format_bytes(more), " of weights)")));
  }
  return claims;
}

void SessionBuffers::load_weights(std::vector<Reservation>& claims) {
  const Model& model = *view_.context.model;
  const std::vector<SessionStorage>& storages = view_.plan.storages;
  std::vector<std::vector<FilePart>> wanted(view_.place_count());
  for (const SessionStorage& storage : storages) {
    if (storage.kind != SessionStorage::Kind::weight) continue;
    const WeightSource source = view_.weight_source(storage);
    if (!view_.places.places[storage.place].weights->has(source, model.checkpoint->identity()))
      std::ranges::move(file_parts(source), std::back_inserter(wanted[storage.place]));
  }
  std::vector<Expectation> expected;
  for (std::uint32_t p = 0; p < view_.place_count(); ++p)
    add_expectation(view_, expected, p, wanted[p], UseOrder::once);

  weights_.resize(storages.size());
  const std::string name = weights_name(model);
  for (std::size_t s = 0; s < storages.size(); ++s) {
    if (view_.context.cancelled())
      throw Error(Code::cancelled, "cancelled while weights were loaded");
    const SessionStorage& storage = storages[s];
    if (storage.kind != SessionStorage::Kind::weight) continue;
    const WeightUser user{model.identity, name, std::uint32_t(s)};
    weights_[s] = view_.places.places[storage.place].weights->get(
        view_.weight_source(storage), model.checkpoint->identity(), view_.weight_watch(storage),
        user, &claims[storage.place]);
  }
  for (std::uint32_t p = 0; p < view_.place_count(); ++p) {
    std::vector<std::shared_ptr<const DeviceWeight>> here;
    for (std::size_t s = 0; s < weights_.size(); ++s)
      if (weights_[s] != nullptr && storages[s].place == p) here.push_back(weights_[s]);
    view_.places.places[p].weights->finish(here);
  }
}

void SessionBuffers::allocate_arenas(std::vector<Reservation>& claims) {
  const std::string name = weights_name(*view_.context.model);
  const std::string ring = cat("the ring of ", name), arena = cat("the activations of ", name);
  for (std::uint32_t p = 0; p < view_.place_count(); ++p) {
    DeviceState& state = view_.state(p);
    const SessionPlan::Arenas& bytes = view_.plan.arenas[p];
    const std::uint32_t owner = state.ledger().owner(name);
    const PieceUse activations{{Held::activations, owner}, arena, &claims[p]};
    arenas_.push_back(
        {state.allocate(bytes.persistent_bytes, activations),
         state.allocate(bytes.scratch_bytes, activations),
         bytes.ring_bytes == 0
             ? nullptr
             : state.allocate(bytes.ring_bytes, {{Held::ring, owner}, ring, &claims[p]})});
  }
}

std::byte* SessionBuffers::address(const Operand& operand) const {
  const SessionStorage& storage = view_.plan.storages[operand.storage];
  const auto in = [&](const std::shared_ptr<DeviceMemory>& arena) {
    return arena->data() + storage.offset + operand.offset_bytes;
  };
  switch (storage.kind) {
    case SessionStorage::Kind::persistent:
    case SessionStorage::Kind::step_input:
      return in(arenas_[storage.place].persistent);
    case SessionStorage::Kind::scratch:
      return in(arenas_[storage.place].scratch);
    case SessionStorage::Kind::page:
      return in(arenas_[storage.place].ring);
    case SessionStorage::Kind::weight:
      return weights_[operand.storage]->memory->data() + operand.offset_bytes;
    default:
      return externals_[operand.storage]->data() + operand.offset_bytes;
  }
}

Tensor SessionBuffers::output(const SessionPlan::Output& output) const {
  const SessionStorage& storage = view_.plan.storages[output.value.storage];
  if (storage.kind == SessionStorage::Kind::constant ||
      storage.kind == SessionStorage::Kind::schedule) {
    const Tensor& external = externals_[output.value.storage];
    return make_tensor(output.value.info, external->storage,
                       external->offset_bytes + output.value.offset_bytes);
  }
  const Arenas& arenas = arenas_[storage.place];
  return make_tensor(
      output.value.info,
      storage.kind == SessionStorage::Kind::scratch ? arenas.scratch : arenas.persistent,
      storage.offset + output.value.offset_bytes);
}

Tensor SessionBuffers::step_input(const SessionStorage& storage,
                                  const heddle_tensor_info& info) const {
  return make_tensor(checked_info(info, "step input"), arenas_[storage.place].persistent,
                     storage.offset);
}

Tensor SessionBuffers::lane_input(const heddle_value& record, const SessionStorage& storage) const {
  const auto* fields = std::get_if<Record>(&record.content);
  const Value* given = fields == nullptr ? nullptr : fields->find(storage.input);
  if (given == nullptr)
    throw Error(Code::invalid_argument,
                cat("the model's input ", quote(storage.input), " is missing"));
  const Tensor& tensor = get_tensor(**given);
  const SessionLane& lane = view_.plan.lanes[storage.lane];
  if (lane.count == 0 || dense_bytes(tensor->info) == storage.bytes) return tensor;
  heddle_tensor_info items = tensor->info;
  items.shape[0] = lane.count;
  return view(tensor, items, lane.begin * items.stride[0]);
}

void add_expectation(const SessionView& view, std::vector<Expectation>& to, std::uint32_t place,
                     const std::vector<FilePart>& parts, UseOrder order) {
  DeviceState& state = view.state(place);
  HostWeights* const host = state.host_weights();
  if (host == nullptr || parts.empty()) return;
  Timeline* const timeline = view.context.timeline;
  to.push_back(host->expect(parts, order, state.share_device(),
                            timeline == nullptr ? ReadWatch() : timeline->read_watch()));
}

}  // namespace heddle::core
