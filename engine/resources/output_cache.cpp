#include "engine/resources/output_cache.h"

#include <algorithm>
#include <functional>
#include <map>
#include <new>
#include <tuple>
#include <utility>

namespace heddle::engine {

namespace {

// An entry costs something besides its tensors, so that millions of numbers do not count as
// nothing.
constexpr std::uint64_t kEntryBytes = 256;

// What may wait to be added: so many, and nothing that anybody would miss the memory of.
constexpr std::size_t kMostWaiting = 64;
constexpr std::uint64_t kMostWaitingBytes = 1024;

std::uint64_t tensor_bytes(const heddle_value& value) {
  std::uint64_t bytes = 0;
  for_each_tensor(value, [&](const Tensor& t) { bytes += t->storage->bytes(); });
  return bytes;
}

inline std::uint64_t bytes_of(std::span<const Value> outputs) {
  std::uint64_t bytes = kEntryBytes;
  for (const Value& value : outputs) {
    const heddle_kind kind = kind_of(*value);
    if (kind == HEDDLE_KIND_STR) bytes += get_str(*value).size();
    if (kind == HEDDLE_KIND_TENSOR || kind == HEDDLE_KIND_LIST || kind == HEDDLE_KIND_RECORD)
      bytes += tensor_bytes(*value);
  }
  return bytes;
}

// A share of what nobody else counts meanwhile. Where nobody else has one there is no need of an
// atomic step, which would wait until all that was written before it has reached the memory.
Value share_unseen(const Value& value) {
  if (value->refs.load(std::memory_order_relaxed) != 1) return value;
  value->refs.store(2, std::memory_order_relaxed);
  return Value::adopt(value.get());
}

// Room for what may lack no memory later.
template <class List>
void grow(List& list, std::size_t count) {
  if (list.capacity() < count) list.reserve(std::max(count, 2 * list.capacity()));
}

}  // namespace

std::optional<std::span<const Value>> OutputCache::Reading::find(const Hash128& key,
                                                                 const RunWork* own,
                                                                 std::uint64_t but_of) const {
  const auto found = state_->places.find(key);
  if (found == state_->places.end()) return std::nullopt;
  Entry& entry = state_->entries[found->second];
  const WorkMark& by = entry.by;
  if (but_of != 0 && (by.work == nullptr ? by.mark == but_of : by.work.get() == own))
    return std::nullopt;
  if (by.work != nullptr && by.work.get() != own && !by.work->hold(by.mark)) return std::nullopt;
  entry.last_use = ++state_->clock;
  return std::span<const Value>(entry.outputs);
}

bool OutputCache::contains(const Hash128& key) const { return state_.lock()->places.contains(key); }

void OutputCache::add(const Hash128& key, std::span<const Value> outputs, double seconds,
                      WorkMark by) {
  const std::uint64_t bytes = bytes_of(outputs);
  if (bytes > limit_bytes_) return;
  std::vector<Value> shares(outputs.begin(), outputs.end());
  std::vector<Entry> dropped;
  add(*state_.lock(), key, shares, bytes, seconds, std::move(by), dropped);
}

void OutputCache::add(State& state, const Hash128& key, std::span<Value> outputs,
                      std::uint64_t bytes, double seconds, WorkMark&& by,
                      std::vector<Entry>& dropped) {
  if (state.bytes + bytes > limit_bytes_) {
    if (state.places.contains(key)) return;
    while (state.bytes + bytes > limit_bytes_) dropped.push_back(evict(state));
  }
  if (state.is_ranked) grow(state.candidates, state.candidates.size() + 1);
  const bool is_last = state.free_places.empty();
  std::uint32_t place = 0;
  if (is_last) {
    place = static_cast<std::uint32_t>(state.entries.size());
    grow(state.free_places, place + 1);  // whatever is evicted finds room there
    state.entries.emplace_back();
  } else {
    place = state.free_places.back();
  }
  Entry& entry = is_last ? state.entries.back() : state.entries[place];
  try {
    entry.outputs.reserve(outputs.size());
    // From here on only the index may lack memory, and then nothing has changed.
    if (!state.places.try_emplace(key, place).second) {
      if (is_last) state.entries.pop_back();
      return;
    }
  } catch (...) {
    if (is_last) state.entries.pop_back();
    throw;
  }
  if (!is_last) state.free_places.pop_back();
  for (Value& output : outputs) entry.outputs.push_back(std::move(output));
  entry.bytes = bytes;
  entry.seconds = seconds;
  entry.last_use = ++state.clock;
  entry.by = std::move(by);
  state.bytes += bytes;
  if (state.is_ranked) rank(state, {entry.worth(), entry.last_use, key});
}

void OutputCache::Adding::add(const Hash128& key, std::span<const Value> outputs, double seconds,
                              WorkMark by) {
  const std::uint64_t bytes = bytes_of(outputs);
  if (bytes > std::min(kMostWaitingBytes, cache_.limit_bytes_))
    return cache_.add(key, outputs, seconds, std::move(by));
  made_.push_back({key, outputs.size(), bytes, seconds, std::move(by)});
  for (const Value& output : outputs) outputs_.push_back(share_unseen(output));
  if (made_.size() == kMostWaiting) flush();
}

void OutputCache::Adding::flush() {
  if (made_.empty()) return;
  std::vector<Entry> dropped;
  try {
    const auto state = cache_.state_.lock();
    std::span<Value> rest = outputs_;
    for (Made& made : made_) {
      cache_.add(*state, made.key, rest.first(made.output_count), made.bytes, made.seconds,
                 std::move(made.by), dropped);
      rest = rest.subspan(made.output_count);
    }
  } catch (const std::bad_alloc&) {
    // What there is no memory to keep is computed again.
  }
  made_.clear();
  outputs_.clear();
}

void OutputCache::rank(State& state, const Candidate& candidate) {
  state.candidates.push_back(candidate);
  std::ranges::push_heap(state.candidates, std::greater<>());
}

OutputCache::Entry OutputCache::evict(State& state) {
  if (!state.is_ranked) {
    state.is_ranked = true;
    for (const auto& [key, place] : state.places) {
      const Entry& entry = state.entries[place];
      state.candidates.push_back({entry.worth(), entry.last_use, key});
    }
    std::ranges::make_heap(state.candidates, std::greater<>());
  }
  for (;;) {
    std::ranges::pop_heap(state.candidates, std::greater<>());
    const Candidate candidate = state.candidates.back();
    state.candidates.pop_back();
    const auto found = state.places.find(candidate.key);
    Entry& entry = state.entries[found->second];
    if (entry.last_use != candidate.last_use) {  // it was used since
      rank(state, {candidate.worth, entry.last_use, candidate.key});
      continue;
    }
    state.free_places.push_back(found->second);
    state.places.erase(found);
    state.bytes -= entry.bytes;
    return std::exchange(entry, {});
  }
}

std::uint64_t OutputCache::make_room(
    std::uint64_t bytes,
    const std::function<std::uint64_t(const Value& value, std::uint32_t shares)>& there,
    const std::function<Value(const Value&)>& instead) {
  // Nodes that pass a value on have it in entries of their own: it comes free when all of them go.
  struct Found {
    Value value;
    double worth = 0;
    std::uint64_t last_use = 0, bytes = 0;
    std::uint32_t shares = 0;
    std::vector<Hash128> keys;
  };
  std::vector<Found> found;
  {
    std::map<const heddle_value*, Found> by_value;
    const auto state = state_.lock();
    for (const auto& [key, place] : state->places) {
      const Entry& entry = state->entries[place];
      for (const Value& value : entry.outputs) {
        if (!value || kind_of(*value) < HEDDLE_KIND_TENSOR) continue;
        Found& one = by_value[value.get()];
        ++one.shares;
        one.worth = std::max(one.worth, entry.worth());
        one.last_use = std::max(one.last_use, entry.last_use);
        if (one.keys.empty() || one.keys.back() != key) one.keys.push_back(key);
      }
    }
    for (auto& [raw, one] : by_value) {
      const Value& value = *std::ranges::find(
          state->entries[state->places.find(one.keys[0])->second].outputs, raw, &Value::get);
      one.bytes = there(value, one.shares);
      if (one.bytes == 0) continue;
      one.value = value;
      found.push_back(std::move(one));
    }
  }
  std::ranges::sort(found, [](const Found& a, const Found& b) {
    return std::tie(a.worth, a.last_use) < std::tie(b.worth, b.last_use);
  });
  std::uint64_t went = 0;
  for (const Found& one : found) {
    if (went >= bytes) break;
    const Value other = instead(one.value);
    std::vector<Entry> gone;  // freed after the lock
    const auto state = state_.lock();
    for (const Hash128& key : one.keys) gone.push_back(replace(*state, key, one.value, other));
    went += one.bytes;
  }
  return went;
}

OutputCache::Entry OutputCache::replace(State& state, const Hash128& key, const Value& value,
                                        const Value& other) {
  const auto at = state.places.find(key);
  if (at == state.places.end()) return {};
  Entry& entry = state.entries[at->second];
  if (std::ranges::find(entry.outputs, value) == entry.outputs.end()) return {};  // made anew
  if (other) {
    std::ranges::replace(entry.outputs, value, other);
    return {};
  }
  state.bytes -= entry.bytes;
  state.free_places.push_back(at->second);
  state.places.erase(at);
  state.candidates.clear();  // they are ranked anew when the limit is reached again
  state.is_ranked = false;
  return std::exchange(entry, {});
}

void OutputCache::drop_if(
    const std::function<bool(const Hash128& key, std::span<const Value> outputs)>& goes) {
  std::vector<Entry> dropped;  // freed after the lock
  const auto state = state_.lock();
  for (auto at = state->places.begin(); at != state->places.end();) {
    Entry& entry = state->entries[at->second];
    if (!goes(at->first, entry.outputs)) {
      ++at;
      continue;
    }
    state->bytes -= entry.bytes;
    state->free_places.push_back(at->second);
    dropped.push_back(std::exchange(entry, {}));
    state->places.erase(at++);
  }
  if (dropped.empty()) return;
  state->candidates.clear();  // they are ranked anew when the limit is reached again
  state->is_ranked = false;
}

std::uint64_t OutputCache::clear() {
  std::deque<Entry> dropped;
  const auto state = state_.lock();
  state->entries.swap(dropped);
  state->places.clear();
  state->free_places.clear();
  state->candidates.clear();
  state->is_ranked = false;
  return std::exchange(state->bytes, 0);
}

std::uint64_t OutputCache::bytes() const { return state_.lock()->bytes; }
std::size_t OutputCache::size() const { return state_.lock()->places.size(); }

}  // namespace heddle::engine
