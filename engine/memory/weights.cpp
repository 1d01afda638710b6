#include "engine/memory/weights.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::core {

namespace {

Hash128 key_of(const WeightSource& source, Hash128 checkpoint) {
  Hasher hasher;
  hasher.add(checkpoint).add(source.use);
  for (const WeightSource::Part& part : source.parts) hasher.add(std::string_view(part.tensor->name)).add(part.begin).add(part.end);
  for (const WeightSource::Range& c : source.columns) hasher.add(std::string_view("columns")).add(c.begin).add(c.end);
  return hasher.finish();
}

}  // namespace

bool WeightStore::has(const WeightSource& source, Hash128 checkpoint) const {
  return entries_.lock()->entries.contains(key_of(source, checkpoint));
}

std::shared_ptr<const DeviceWeight> WeightStore::get(const WeightSource& source, Hash128 checkpoint, const WorkWatch& watch) {
  const Hash128 key = key_of(source, checkpoint);
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
  const HostWeight host = host_weight(source, state_);
  state->keep.insert(state->keep.end(), host.keep.begin(), host.keep.end());
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
  if (!state->keep.empty()) prove(*state);
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
  state.keep.clear();
  state.unproven.clear();
  if (state_.host_weights() != nullptr) state_.host_weights()->reclaim();  // what only the loading needed
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
