// Which weights go when room is wanted, and in which order.
#include <algorithm>
#include <tuple>
#include <utility>

#include "engine/memory/weights.h"

namespace heddle::engine {

namespace {

constexpr std::uint64_t kNever = ~std::uint64_t{0};

std::uint64_t bytes_of(const std::vector<std::shared_ptr<DeviceWeight>>& weights) {
  std::uint64_t bytes = 0;
  for (const auto& weight : weights) bytes += weight->layout.bytes;
  return bytes;
}

}  // namespace

std::uint64_t WeightStore::evict(std::uint64_t bytes, const NextUses& next, Reach reach) {
  Gone gone;
  const auto state = entries_.lock();
  struct Candidate {
    bool is_small;
    std::uint64_t nearness;  // of the next use; 0: there is none
    std::uint64_t last_use;  // of the model
    Hash128 model;
    std::uint32_t from_end;
    Entries::iterator entry;
    auto rank() const { return std::tie(is_small, nearness, last_use, model, from_end); }
  };
  std::vector<Candidate> candidates;
  for (auto e = state->entries.begin(); e != state->entries.end(); ++e) {
    const Entry& entry = e->second;
    if (entry.weight->is_pinned()) continue;
    const auto use = next.find(entry.model);
    if (use != next.end() && reach == Reach::without_use) continue;
    candidates.push_back({entry.weight->layout.bytes <= kSmallBytes,
                          use == next.end() ? 0 : kNever - use->second,
                          state->models[entry.model].last_use, entry.model, ~entry.order, e});
  }
  std::ranges::sort(candidates,
                    [](const Candidate& a, const Candidate& b) { return a.rank() < b.rank(); });
  std::uint64_t went = 0;
  for (const Candidate& candidate : candidates) {
    if (went >= bytes) break;
    std::shared_ptr<DeviceWeight>& weight = candidate.entry->second.weight;
    went += weight->layout.bytes;
    state->bytes -= weight->layout.bytes;
    gone.push_back(std::move(weight));
    state->entries.erase(candidate.entry);
  }
  return went;
}

void WeightStore::keep_to_limit(std::uint64_t wanted) {
  const std::uint64_t held = bytes();
  if (held > limit_bytes_ || wanted > limit_bytes_ - held)
    evict(held + wanted - std::min(held + wanted, limit_bytes_));
}

std::uint64_t WeightStore::unload(std::string_view name) {
  Gone gone;
  const auto state = entries_.lock();
  gone = drop_if(*state, [&](const Entry& entry) {
    return name.empty() || state->models[entry.model].name == name;
  });
  return bytes_of(gone);
}

std::uint64_t WeightStore::expire(double now, double seconds) {
  Gone gone;
  const auto state = entries_.lock();
  std::set<Hash128> in_use;
  for (const auto& [key, entry] : state->entries)
    if (entry.weight->is_pinned()) in_use.insert(entry.model);
  for (auto& [id, model] : state->models)
    if (in_use.contains(id) || model.seen_use != model.last_use) {
      model.seen_use = model.last_use;
      model.seen_at = now;
    }
  gone = drop_if(*state, [&](const Entry& entry) {
    return now - state->models[entry.model].seen_at >= seconds;
  });
  return bytes_of(gone);
}

void WeightStore::keep_for(Entry& entry, const Hash128& model) {
  if (entry.kept_for.empty()) entry.weight->pin();
  entry.kept_for.insert(model);
}

void WeightStore::release_from(Entry& entry, const Hash128& model) {
  if (entry.kept_for.erase(model) > 0 && entry.kept_for.empty()) entry.weight->unpin();
}

std::map<Hash128, std::uint64_t> WeightStore::weights_of(const Hash128& model) const {
  const auto state = entries_.lock();
  std::map<Hash128, std::uint64_t> weights;
  for (const auto& [key, entry] : state->entries)
    if (entry.kept_for.contains(model) ||
        std::ranges::find(entry.users, model) != entry.users.end())
      weights.emplace(key, state_.pool().rounded(entry.weight->layout.bytes));
  return weights;
}

void WeightStore::keep(const Hash128& model, const std::map<Hash128, std::uint64_t>& weights) {
  const auto state = entries_.lock();
  std::set<Hash128>& kept = state->models[model].kept;
  kept.clear();
  for (const auto& [key, bytes] : weights) kept.insert(key);
  for (auto& [key, entry] : state->entries)
    if (kept.contains(key))
      keep_for(entry, model);
    else
      release_from(entry, model);
}

void WeightStore::release(const Hash128& model) {
  const auto state = entries_.lock();
  const auto found = state->models.find(model);
  if (found == state->models.end() || std::exchange(found->second.kept, {}).empty()) return;
  for (auto& [key, entry] : state->entries) release_from(entry, model);
}

std::map<Hash128, std::uint64_t> WeightStore::kept_of(const Hash128& model) const {
  const auto state = entries_.lock();
  const auto found = state->models.find(model);
  std::map<Hash128, std::uint64_t> weights;
  if (found == state->models.end()) return weights;
  for (const Hash128& key : found->second.kept) {
    const auto entry = state->entries.find(key);
    const bool is_here = entry != state->entries.end();
    weights.emplace(key, is_here ? state_.pool().rounded(entry->second.weight->layout.bytes) : 0);
  }
  return weights;
}

std::vector<Hash128> WeightStore::release_kept() {
  std::vector<Hash128> kept;
  {
    const auto state = entries_.lock();
    for (const auto& [id, model] : state->models)
      if (!model.kept.empty()) kept.push_back(id);
  }
  for (const Hash128& model : kept) release(model);
  return kept;
}

std::vector<ModelWeights> WeightStore::models() const {
  const auto state = entries_.lock();
  std::map<Hash128, ModelWeights> found;
  for (const auto& [key, entry] : state->entries) {
    // What is kept for several counts for each of them, and for whoever used it last.
    std::set<Hash128> models = entry.kept_for;
    models.insert(entry.model);
    const std::uint64_t bytes = entry.weight->layout.bytes;
    for (const Hash128& id : models) {
      ModelWeights& model = found[id];
      model.bytes += bytes;
      if (entry.weight->is_pinned()) model.pinned += bytes;
      if (entry.weight->pins() > (entry.kept_for.empty() ? 0u : 1u)) model.used += bytes;
      if (entry.kept_for.contains(id)) model.kept += bytes;
    }
  }
  std::vector<ModelWeights> all;
  for (auto& [id, model] : found) {
    model.model = id;
    model.name = state->models.at(id).name;
    all.push_back(std::move(model));
  }
  std::ranges::stable_sort(all, std::greater<>(), &ModelWeights::bytes);
  return all;
}

}  // namespace heddle::engine
