#include "engine/memory/weights.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::core {

namespace {

constexpr std::uint64_t kMostMadeBytes = 256 << 20;

}  // namespace

std::shared_ptr<const DeviceWeight> WeightStore::get(const WeightSource& source, Hash128 checkpoint, const WorkWatch& watch) {
  const Hash128 key = source.key(checkpoint);
  const auto state = entries_.lock();
  if (const auto found = state->entries.find(key); found != state->entries.end()) {
    found->second.last_use = ++state->clock;
    return found->second.weight;
  }
  if (state->unproven.empty()) state->failures_before = state_.device().failed_waits();
  auto weight = std::make_shared<DeviceWeight>();
  weight->form = form(source);
  evict(*state, weight->form.bytes);
  weight->memory = state_.allocate(weight->form.bytes);
  // Not more than a little of what is made for this alone: the weights of a big model are made one after another.
  if (state->made_bytes > kMostMadeBytes) prove(*state);
  const HostWeight host = host_weight(source);
  state->keep.insert(state->keep.end(), host.keep.begin(), host.keep.end());
  state->made_bytes += host.made_bytes;
  for (const WeightSource::Part& part : source.parts) state->reading.push_back(part.tensor->file);
  try {
    watched(watch, state_, weight->form.bytes, [&] {
      state_.with_stream([&](Stream& stream) { make_device_weight(stream, host, weight->form, weight->memory->data()); });
    });
  } catch (const Error&) {
    lose_unproven(*state);  // a device that takes no more work has perhaps dropped what it had taken
    throw;
  }
  state->bytes += weight->form.bytes;
  state->entries[key] = {weight, ++state->clock};
  state->unproven.emplace_back(key, weight);
  return weight;
}

void WeightStore::finish(std::span<const std::shared_ptr<const DeviceWeight>> wanted) {
  const auto state = entries_.lock();
  if (!state->reading.empty()) prove(*state);
  if (std::ranges::any_of(wanted, [](const auto& weight) { return weight != nullptr && weight->is_lost; }))
    throw Error(Code::io, cat(state_.device().name(), ": weights were lost when the device failed: ", state_.device().last_failure()));
}

void WeightStore::prove(State& state) const {
  try {
    state_.synchronize();
    if (!state.unproven.empty() && state_.device().failed_waits() != state.failures_before)
      throw Error(Code::io, cat(state_.device().name(), ": the device failed while weights were copied there: ", state_.device().last_failure()));
  } catch (const Error&) {
    lose_unproven(state);
    throw;  // what enqueued work reads stays: nobody knows whether it is done
  }
  // By file: whoever asked for a weight and failed may have let go of its checkpoint since, but not of the file.
  for (const auto& file : state.reading) file->mapping->advise(0, file->mapping->bytes().size(), Advice::dont_need);
  state.keep.clear();
  state.made_bytes = 0;
  state.reading.clear();
  state.unproven.clear();
}

void WeightStore::lose_unproven(State& state) {
  for (const auto& [key, unproven] : state.unproven) {
    const std::shared_ptr<DeviceWeight> weight = unproven.lock();
    if (weight == nullptr) continue;
    weight->is_lost = true;
    const auto at = state.entries.find(key);
    if (at == state.entries.end() || at->second.weight != weight) continue;
    state.bytes -= weight->form.bytes;
    state.entries.erase(at);
  }
  state.unproven.clear();
}

void WeightStore::drop_all() {
  const auto state = entries_.lock();
  lose_unproven(*state);
  state->entries.clear();
  state->bytes = 0;
}

std::uint64_t WeightStore::bytes() const { return entries_.lock()->bytes; }

void WeightStore::drop_unused() {
  const auto state = entries_.lock();
  evict(*state, limit_bytes_);
}

void WeightStore::evict(State& state, std::uint64_t wanted) const {
  while (state.bytes + wanted > limit_bytes_) {
    auto oldest = state.entries.end();
    for (auto e = state.entries.begin(); e != state.entries.end(); ++e)
      if (e->second.weight.use_count() == 1 && (oldest == state.entries.end() || e->second.last_use < oldest->second.last_use)) oldest = e;
    if (oldest == state.entries.end()) return;  // all in use: the pool will say whether there is room
    state.bytes -= oldest->second.weight->form.bytes;
    state.entries.erase(oldest);
  }
}

}  // namespace heddle::core
