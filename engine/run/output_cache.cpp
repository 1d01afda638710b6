#include "engine/run/output_cache.h"

#include <algorithm>

namespace heddle::core {

namespace {

// An entry costs something besides its tensors, so that millions of numbers do not count as nothing.
constexpr std::uint64_t kEntryBytes = 256;

std::uint64_t bytes_of(const CachedOutputs& outputs) {
  std::uint64_t bytes = kEntryBytes;
  for (const Value& value : outputs.outputs)
    if (value) {
      for_each_tensor(*value, [&](const Tensor& t) { bytes += t->storage->bytes(); });
      if (const auto* text = std::get_if<std::string>(&value->content)) bytes += text->size();
    }
  return bytes;
}

}  // namespace

std::shared_ptr<const CachedOutputs> OutputCache::find(Hash128 key) {
  const auto state = state_.lock();
  const auto found = state->entries.find(key);
  if (found == state->entries.end()) return nullptr;
  found->second.last_use = ++state->clock;
  return found->second.outputs;
}

bool OutputCache::contains(Hash128 key) const { return state_.lock()->entries.contains(key); }

void OutputCache::add(Hash128 key, CachedOutputs outputs, double seconds) {
  const std::uint64_t bytes = bytes_of(outputs);
  std::vector<std::shared_ptr<const CachedOutputs>> dropped;  // released after the lock: tensors may take time to go
  const auto state = state_.lock();
  if (bytes > limit_bytes_ || state->entries.contains(key)) return;
  while (state->bytes + bytes > limit_bytes_) {
    const auto worse = [](const auto& a, const auto& b) {
      const double worth_a = a.second.seconds / double(a.second.bytes), worth_b = b.second.seconds / double(b.second.bytes);
      return worth_a != worth_b ? worth_a < worth_b : a.second.last_use < b.second.last_use;
    };
    const auto victim = std::min_element(state->entries.begin(), state->entries.end(), worse);
    state->bytes -= victim->second.bytes;
    dropped.push_back(std::move(victim->second.outputs));
    state->entries.erase(victim);
  }
  state->bytes += bytes;
  state->entries[key] = {std::make_shared<const CachedOutputs>(std::move(outputs)), bytes, seconds, ++state->clock};
}

void OutputCache::clear() {
  const auto state = state_.lock();
  state->entries.clear();
  state->bytes = 0;
}

std::uint64_t OutputCache::bytes() const { return state_.lock()->bytes; }
std::size_t OutputCache::size() const { return state_.lock()->entries.size(); }

}  // namespace heddle::core
