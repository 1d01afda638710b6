#include "engine/run/output_cache.h"

#include <algorithm>
#include <functional>
#include <new>
#include <utility>

namespace heddle::core {

namespace {

// An entry costs something besides its tensors, so that millions of numbers do not count as
// nothing.
constexpr std::uint64_t kEntryBytes = 256;

// What may wait to be added: so many, and nothing that anybody would miss the memory of.
constexpr std::size_t kMostWaiting = 64;
constexpr std::uint64_t kMostWaitingBytes = 1024;

std::uint64_t bytes_of(std::span<const Value> outputs) {
  std::uint64_t bytes = kEntryBytes;
  for (const Value& value : outputs) {
    const heddle_kind kind = kind_of(*value);
    if (kind == HEDDLE_KIND_STR) bytes += get_str(*value).size();
    if (kind == HEDDLE_KIND_TENSOR || kind == HEDDLE_KIND_LIST || kind == HEDDLE_KIND_RECORD)
      for_each_tensor(*value, [&](const Tensor& t) { bytes += t->storage->bytes(); });
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

}  // namespace

std::optional<std::span<const Value>> OutputCache::Reading::find(const Hash128& key) const {
  const auto found = state_->places.find(key);
  if (found == state_->places.end()) return std::nullopt;
  Entry& entry = state_->entries[found->second];
  entry.last_use = ++state_->clock;
  return std::span<const Value>(entry.outputs);
}

bool OutputCache::contains(const Hash128& key) const { return state_.lock()->places.contains(key); }

void OutputCache::add(const Hash128& key, std::span<const Value> outputs, double seconds) {
  const std::uint64_t bytes = bytes_of(outputs);
  if (bytes > limit_bytes_) return;
  std::vector<Value> shares(outputs.begin(), outputs.end());
  std::vector<Entry> dropped;
  add(*state_.lock(), key, shares, bytes, seconds, dropped);
}

void OutputCache::add(State& state, const Hash128& key, std::span<Value> outputs,
                      std::uint64_t bytes, double seconds, std::vector<Entry>& dropped) {
  if (state.bytes + bytes > limit_bytes_) {
    if (state.places.contains(key)) return;
    while (state.bytes + bytes > limit_bytes_) dropped.push_back(evict(state));
  }
  const bool is_last = state.free_places.empty();
  const std::uint32_t place =
      is_last ? static_cast<std::uint32_t>(state.entries.size()) : state.free_places.back();
  if (!state.places.try_emplace(key, place).second) return;
  if (is_last)
    state.entries.emplace_back();
  else
    state.free_places.pop_back();
  state.bytes += bytes;
  Entry& entry = is_last ? state.entries.back() : state.entries[place];
  for (Value& output : outputs) entry.outputs.push_back(std::move(output));
  entry.bytes = bytes;
  entry.seconds = seconds;
  entry.last_use = ++state.clock;
  if (state.is_ranked) rank(state, {entry.worth(), entry.last_use, key});
}

void OutputCache::Adding::add(const Hash128& key, std::span<const Value> outputs, double seconds) {
  const std::uint64_t bytes = bytes_of(outputs);
  if (bytes > std::min(kMostWaitingBytes, cache_.limit_bytes_))
    return cache_.add(key, outputs, seconds);
  made_.push_back({key, outputs.size(), bytes, seconds});
  for (const Value& output : outputs) outputs_.push_back(share_unseen(output));
  if (made_.size() == kMostWaiting) flush();
}

void OutputCache::Adding::flush() {
  if (made_.empty()) return;
  std::vector<Entry> dropped;
  try {
    const auto state = cache_.state_.lock();
    std::span<Value> rest = outputs_;
    for (const Made& made : made_) {
      cache_.add(*state, made.key, rest.first(made.output_count), made.bytes, made.seconds,
                 dropped);
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

void OutputCache::drop_if(
    const std::function<bool(const Hash128& key, std::span<const Value> outputs)>& goes) {
  std::vector<Entry> dropped;  // let go after the lock
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

void OutputCache::clear() {
  std::deque<Entry> dropped;
  const auto state = state_.lock();
  state->entries.swap(dropped);
  state->places.clear();
  state->free_places.clear();
  state->candidates.clear();
  state->is_ranked = false;
  state->bytes = 0;
}

std::uint64_t OutputCache::bytes() const { return state_.lock()->bytes; }
std::size_t OutputCache::size() const { return state_.lock()->places.size(); }

}  // namespace heddle::core
