#include "engine/memory/weights.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/memory/weight_rows.h"

namespace heddle::engine {

namespace {

constexpr std::uint64_t kMostMadeBytes = 256 << 20;

}  // namespace

void DeviceWeight::pin() const {
  if (pins_.fetch_add(1, std::memory_order_acq_rel) == 0 && memory != nullptr)
    memory->state().ledger().pin(tag, memory->bytes());
}

void DeviceWeight::unpin() const {
  std::uint32_t pins = pins_.load(std::memory_order_acquire);
  do {
    if (pins == 0) throw Error(Code::internal, "a weight is unpinned that nobody has pinned");
  } while (!pins_.compare_exchange_weak(pins, pins - 1, std::memory_order_acq_rel));
  if (pins == 1 && memory != nullptr) memory->state().ledger().unpin(tag, memory->bytes());
}

namespace {

// The weight itself, pinned until the last copy of the pointer goes.
std::shared_ptr<const DeviceWeight> pinned(std::shared_ptr<const DeviceWeight> weight) {
  struct Pin {
    explicit Pin(std::shared_ptr<const DeviceWeight> of) : weight(std::move(of)) { weight->pin(); }
    Pin(const Pin&) = delete;
    ~Pin() { weight->unpin(); }
    const std::shared_ptr<const DeviceWeight> weight;
  };
  const auto pin = std::make_shared<const Pin>(std::move(weight));
  return {pin, pin->weight.get()};
}

}  // namespace

// One thread makes a weight; whoever else wants it waits, instead of taking memory for it a second
// time.
class WeightStore::BeingMade {
 public:
  BeingMade(WeightStore& store, const Hash128& key) : store_(store), key_(key) {}
  BeingMade(const BeingMade&) = delete;
  ~BeingMade() {
    store_.entries_.lock()->being_made.erase(key_);
    store_.made_.notify_all();
  }

 private:
  WeightStore& store_;
  const Hash128 key_;
};

std::shared_ptr<const DeviceWeight> WeightStore::touch(State& state, Entries::value_type& at,
                                                       const Hash128& model,
                                                       const WeightUser& user) {
  auto& [key, entry] = at;
  entry.last_use = ++state.clock;
  entry.model = model;  // of equal weights of two models, whoever used it last
  entry.order = user.order;
  std::erase(entry.users, model);
  if (entry.users.size() == kMostUsers) entry.users.erase(entry.users.begin());
  entry.users.push_back(model);
  Model& of = state.models[model];
  of.last_use = entry.last_use;
  if (of.name.empty()) of.name = user.name;
  if (of.kept.contains(key)) keep_for(entry, model);
  return pinned(entry.weight);
}

bool WeightStore::has(const WeightSource& source, Hash128 checkpoint) const {
  return entries_.lock()->entries.contains(source.key(checkpoint));
}

std::shared_ptr<const DeviceWeight> WeightStore::get(const WeightSource& source, Hash128 checkpoint,
                                                     const WorkWatch& watch, const WeightUser& user,
                                                     Reservation* from) {
  const Hash128 key = source.key(checkpoint);
  const Hash128 model = user.model == Hash128() ? checkpoint : user.model;
  {
    auto state = entries_.lock();
    state.wait(made_, [&](const State& s) { return !s.being_made.contains(key); });
    if (const auto found = state->entries.find(key); found != state->entries.end())
      return touch(*state, *found, model, user);
    state->being_made.insert(key);
  }
  const BeingMade being_made(*this, key);
  auto weight = std::make_shared<DeviceWeight>();
  weight->layout = layout(source);
  weight->tag.owner = state_.ledger().owner(user.name);
  keep_to_limit(weight->layout.bytes);
  // Without the lock: to make room for it, others of this store may have to go.
  weight->memory =
      state_.allocate(weight->layout.bytes,
                      {weight->tag, cat("the weight ", quote(source.parts[0].tensor->name)), from});
  std::vector<WeightSource> groups = row_groups(source, state_);
  std::vector<heddle_weight_layout> layouts;
  for (const WeightSource& group : groups) layouts.push_back(layout(group));
  if (groups.size() > 1 && !are_rows(weight->layout, layouts)) {
    groups = {source};
    layouts = {weight->layout};
  }
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    enqueue(groups[i], layouts[i], *weight, offset, {key, weight}, watch);
    offset += layouts[i].bytes;
  }
  const auto making = making_.lock();
  if (weight->is_lost) throw failure_of_making();  // of some group, as another thread has been told
  const auto state = entries_.lock();
  state->bytes += weight->layout.bytes;
  const auto entry = state->entries.insert_or_assign(key, Entry{.weight = weight}).first;
  return touch(*state, *entry, model, user);
}

// Waits for the bytes, without a lock.
void WeightStore::enqueue(const WeightSource& source, const heddle_weight_layout& layout,
                          const DeviceWeight& to, std::uint64_t offset, const Unproven& unproven,
                          const WorkWatch& watch) {
  const HostWeight host = host_weight(source, state_);  // merges patches: that takes a while
  const auto making = making_.lock();
  // Not more than a little of what is made for this alone: the weights of a big model are made one
  // after another.
  if (making->made_bytes > kMostMadeBytes) prove(*making);
  if (making->unproven.empty()) making->failures_before = state_.device().failed_waits();
  if (making->unproven.empty() || making->unproven.back().first != unproven.first)
    making->unproven.push_back(unproven);
  making->keep.insert(making->keep.end(), host.keep.begin(), host.keep.end());
  for (const auto& file : host.files)
    if (std::ranges::find(making->files, file) == making->files.end())
      making->files.push_back(file);
  making->made_bytes += host.made_bytes;
  try {
    watched(watch, state_, layout.bytes, [&] {
      state_.with_stream([&](Stream& stream) {
        make_device_weight(stream, source, host, layout, to.memory->data() + offset);
      });
    });
  } catch (const std::exception&) {
    if (host.lease != nullptr) host.lease->leave();  // it stays in `keep`
    // A device that takes no more work has perhaps dropped what it had taken.
    lose_unproven(*making);
    throw;
  }
}

Error WeightStore::failure_of_making() const {
  const std::string failure = state_.device().last_failure();
  return Error(Code::io, cat(state_.device().name(), ": weights could not be made, ",
                             failure.empty() ? "as another run has been told"
                                             : cat("because the device failed: ", failure)));
}

void WeightStore::finish(std::span<const std::shared_ptr<const DeviceWeight>> wanted) {
  const auto making = making_.lock();
  if (!making->keep.empty()) prove(*making);
  if (std::ranges::any_of(wanted,
                          [](const auto& weight) { return weight != nullptr && weight->is_lost; }))
    throw failure_of_making();
}

void WeightStore::prove(Making& making) {
  try {
    state_.synchronize();
    if (!making.unproven.empty() && state_.device().failed_waits() != making.failures_before)
      throw Error(Code::io, cat(state_.device().name(),
                                ": the device failed while weights were copied there: ",
                                state_.device().last_failure()));
  } catch (const Error&) {
    lose_unproven(making);
    for (const auto& file : making.files) file->mapping->check_size();  // then that is why
    throw;  // what enqueued work reads stays: nobody knows whether it is done
  }
  making.keep.clear();
  const auto files = std::exchange(making.files, {});
  try {
    // By its size, too: what is cut off within a page reads as zeros without anybody's noticing.
    for (const auto& file : files) file->mapping->check_size();
  } catch (const Error&) {
    making.made_bytes = 0;
    lose_unproven(making);
    throw;
  }
  making.made_bytes = 0;
  making.unproven.clear();
  if (state_.host_weights() != nullptr)
    state_.host_weights()->reclaim();  // what only the loading needed
}

void WeightStore::lose_unproven(Making& making) {
  const auto state = entries_.lock();
  for (const auto& [key, unproven] : making.unproven) {
    const std::shared_ptr<DeviceWeight> weight = unproven.lock();
    if (weight == nullptr) continue;
    weight->is_lost = true;
    const auto at = state->entries.find(key);
    if (at == state->entries.end() || at->second.weight != weight) continue;
    if (!at->second.kept_for.empty()) weight->unpin();
    state->bytes -= weight->layout.bytes;
    state->entries.erase(at);
  }
  making.unproven.clear();
}

void WeightStore::drop_all() {
  const auto making = making_.lock();
  lose_unproven(*making);
  const auto state = entries_.lock();
  for (auto& [key, entry] : state->entries)
    if (!entry.kept_for.empty()) entry.weight->unpin();
  state->entries.clear();
  state->bytes = 0;
}

std::uint64_t WeightStore::bytes() const { return entries_.lock()->bytes; }

WeightStore::Gone WeightStore::drop_if(State& state,
                                       const std::function<bool(const Entry&)>& goes) {
  Gone gone;
  for (auto e = state.entries.begin(); e != state.entries.end();) {
    if (e->second.weight->is_pinned() || !goes(e->second)) {
      ++e;
      continue;
    }
    state.bytes -= e->second.weight->layout.bytes;
    gone.push_back(std::move(e->second.weight));
    e = state.entries.erase(e);
  }
  return gone;
}

}  // namespace heddle::engine
