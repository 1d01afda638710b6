#include "engine/resources/admission_queue.h"

#include <algorithm>
#include <map>
#include <set>

namespace heddle::engine {

namespace {

const MemoryNeed* need_of(const std::vector<MemoryNeed>& needs, std::uint32_t memory) {
  const auto found = std::ranges::find(needs, memory, &MemoryNeed::memory);
  return found == needs.end() ? nullptr : &*found;
}

bool calls(const MemoryNeed& need, const Hash128& model) {
  return std::ranges::any_of(need.models, [&](const auto& each) { return each.first == model; });
}

std::uint64_t bytes_of(const AdmissionQueue::KeptModel& model) {
  std::uint64_t bytes = 0;
  for (const auto& [key, of_weight] : model.weights) bytes += of_weight;
  return bytes;
}

// What they share counts once.
std::uint64_t bytes_of(const std::vector<const AdmissionQueue::KeptModel*>& models) {
  if (models.empty()) return 0;
  std::uint64_t bytes = bytes_of(*models.front());
  if (models.size() == 1) return bytes;
  std::set<Hash128> seen;
  for (const auto& [key, of_weight] : models.front()->weights) seen.insert(key);
  for (std::size_t i = 1; i < models.size(); ++i)
    for (const auto& [key, of_weight] : models[i]->weights)
      if (seen.insert(key).second) bytes += of_weight;
  return bytes;
}

}  // namespace

const AdmissionQueue::Entry* AdmissionQueue::find(Id id) const {
  const auto found = std::ranges::find(entries_, id, &Entry::id);
  return found == entries_.end() ? nullptr : &*found;
}
AdmissionQueue::Entry* AdmissionQueue::find(Id id) {
  return const_cast<Entry*>(std::as_const(*this).find(id));
}

void AdmissionQueue::add(Id id, int priority, std::vector<MemoryNeed> needs, Id after) {
  gone_.erase(id);  // it begins again
  const auto behind =
      std::ranges::find_if(entries_, [&](const Entry& each) { return each.priority < priority; });
  entries_.insert(behind, Entry{id, priority, std::move(needs), after});
}

void AdmissionQueue::add_admitted(Id id, std::vector<MemoryNeed> needs, int priority) {
  add(id, priority, std::move(needs));
  find(id)->is_admitted = true;
}

void AdmissionQueue::give_back(Id id) {
  Entry* const entry = find(id);
  if (entry == nullptr) return;
  entry->is_admitted = entry->is_preempted = false;
  entry->is_paused = true;
  entry->passed = 0;
  entry->needs.clear();
}

void AdmissionQueue::remove(Id id) {
  const Entry* const removed = find(id);
  if (removed == nullptr) return;
  if (removed->after != 0) gone_[id] = removed->after;
  if (gone_.size() > kMostGone) gone_.erase(gone_.begin());
  std::erase_if(entries_, [&](const Entry& each) { return each.id == id; });
}

void AdmissionQueue::set_needs(Id id, std::vector<MemoryNeed> needs) {
  if (Entry* const entry = find(id)) entry->needs = std::move(needs);
}

void AdmissionQueue::move_to_front(Id id) {
  const auto found = std::ranges::find(entries_, id, &Entry::id);
  const auto first = std::ranges::find_if(
      entries_, [&](const Entry& each) { return each.priority <= found->priority; });
  if (first != found) entries_.splice(first, entries_, found);
}

bool AdmissionQueue::ran_beside_others(Id id) const {
  const Entry* const entry = find(id);
  return entry != nullptr && entry->ran_beside_others;
}

void AdmissionQueue::note_others() {
  if (std::ranges::count_if(entries_, &Entry::is_admitted) < 2) return;
  for (Entry& each : entries_) each.ran_beside_others = each.ran_beside_others || each.is_admitted;
}

void AdmissionQueue::admit_anyway(Id id) {
  if (Entry* const entry = find(id)) entry->is_admitted = true;
  note_others();
}

void AdmissionQueue::set_paused(Id id, bool is_paused) {
  if (Entry* const entry = find(id)) entry->is_paused = is_paused;
}

bool AdmissionQueue::is_admitted(Id id) const {
  const Entry* const entry = find(id);
  return entry != nullptr && entry->is_admitted;
}

bool AdmissionQueue::is_used(std::uint32_t memory) const {
  return std::ranges::any_of(entries_, [&](const Entry& each) {
    return each.is_admitted && need_of(each.needs, memory) != nullptr;
  });
}

std::vector<AdmissionQueue::Id> AdmissionQueue::waiting() const {
  std::vector<Id> ids;
  for (const Entry& each : entries_)
    if (!each.is_admitted) ids.push_back(each.id);
  return ids;
}

std::vector<const AdmissionQueue::Entry*> AdmissionQueue::admitted() const {
  std::vector<const Entry*> runs;
  for (const Entry& each : entries_)
    if (each.is_admitted) runs.push_back(&each);
  return runs;
}

// Two bounds, and the lower one holds: each run as if by itself; and what each has of its own
// beside the weights of all models, once each. What is kept there counts as a run that has nothing
// of its own.
std::uint64_t AdmissionQueue::together(std::span<const Entry* const> runs,
                                       std::uint32_t memory) const {
  std::uint64_t apart = 0, shared = 0;
  std::map<Hash128, std::uint64_t> models;  // beyond what is kept of them
  const auto kept = kept_.find(memory);
  if (kept != kept_.end()) apart = shared = kept->second.bytes;
  const auto kept_of = [&](const Hash128& model) -> std::uint64_t {
    if (kept == kept_.end()) return 0;
    const auto found = kept->second.models.find(model);
    return found == kept->second.models.end() ? 0 : bytes_of(found->second);
  };
  for (const Entry* run : runs) {
    const MemoryNeed* const need = need_of(run->needs, memory);
    if (need == nullptr) continue;
    apart += std::min(need->all, need->limit);
    shared += need->own;
    for (const auto& [model, bytes] : need->models)
      models[model] = std::max(models[model], bytes - std::min(bytes, kept_of(model)));
  }
  for (const auto& [model, bytes] : models) shared += bytes;
  return std::min(apart, shared);
}

std::uint64_t AdmissionQueue::kept_beside(const MemoryNeed& need) const {
  const auto kept = kept_.find(need.memory);
  if (kept == kept_.end()) return 0;
  std::vector<const KeptModel*> own;
  for (const auto& [model, of_model] : kept->second.models)
    if (calls(need, model)) own.push_back(&of_model);
  return kept->second.bytes - bytes_of(own);
}

void AdmissionQueue::keep(std::uint32_t memory, const Hash128& model, KeptModel kept) {
  KeptThere& there = kept_[memory];
  if (kept.weights.empty())
    there.models.erase(model);
  else
    there.models[model] = std::move(kept);
  std::vector<const KeptModel*> all;
  for (const auto& [id, each] : there.models) all.push_back(&each);
  there.bytes = bytes_of(all);
}

bool AdmissionQueue::may_keep(std::uint32_t memory, const Hash128& model, const KeptModel& kept,
                              std::uint64_t capacity) const {
  AdmissionQueue with = *this;
  with.keep(memory, model, kept);
  if (with.together(with.admitted(), memory) > capacity) return false;
  return std::ranges::all_of(entries_, [&](const Entry& each) {
    const MemoryNeed* const need = need_of(each.needs, memory);
    return need == nullptr || with.fits(*need, each, {}, capacity);
  });
}

bool AdmissionQueue::fits(const MemoryNeed& need, const Entry& run,
                          const std::vector<const Entry*>& beside, std::uint64_t capacity) const {
  std::vector<const Entry*> all;
  for (const Entry* each : beside)
    if (need_of(each->needs, need.memory) != nullptr) all.push_back(each);
  // Alone it streams what has no room.
  if (all.empty()) return need.least <= capacity - std::min(capacity, kept_beside(need));
  all.push_back(&run);
  return together(all, need.memory) <= capacity;
}

bool AdmissionQueue::fits(const Entry& run, const std::vector<const Entry*>& beside,
                          const MemoryCapacity& capacity) const {
  return std::ranges::all_of(run.needs, [&](const MemoryNeed& need) {
    return fits(need, run, beside, capacity(need.memory));
  });
}

bool AdmissionQueue::delays(const Entry& next, const Entry& first,
                            const std::vector<const Entry*>& admitted,
                            const MemoryCapacity& capacity) const {
  std::vector<const Entry*> with_next = admitted;
  with_next.push_back(&next);
  return std::ranges::any_of(first.needs, [&](const MemoryNeed& need) {
    return need_of(next.needs, need.memory) != nullptr &&
           !fits(need, first, with_next, capacity(need.memory));
  });
}

bool AdmissionQueue::waits_for_another(const Entry& entry) const {
  const Entry* const before = find(entry.after);
  return before != nullptr && !before->is_admitted;
}

bool AdmissionQueue::comes_after(const Entry& entry, Id before) const {
  Id at = entry.after;
  while (at > before) {  // each has come after those that it names
    const Entry* const there = find(at);
    const auto gone = gone_.find(at);
    at = there != nullptr ? there->after : gone != gone_.end() ? gone->second : 0;
  }
  return at != 0 && at == before;
}

// The lowest first, of equals the one that has come last, until the run fits; then those that need
// not go after all stay, the highest first.
std::vector<AdmissionQueue::Entry*> AdmissionQueue::victims_for(const Entry& run,
                                                                std::vector<const Entry*> beside,
                                                                const MemoryCapacity& capacity) {
  std::vector<Entry*> victims;
  for (auto at = entries_.rbegin(); at != entries_.rend() && !fits(run, beside, capacity); ++at) {
    if (!at->is_admitted || at->is_preempted || comes_after(run, at->id)) continue;
    if (at->priority >= run.priority && !comes_after(*at, run.id)) continue;
    victims.push_back(&*at);
    std::erase(beside, &*at);
  }
  if (!fits(run, beside, capacity)) return {};
  for (std::size_t i = victims.size(); i-- > 0;) {
    beside.push_back(victims[i]);
    if (fits(run, beside, capacity))
      victims.erase(victims.begin() + std::ptrdiff_t(i));
    else
      beside.pop_back();
  }
  return victims;
}

std::vector<AdmissionQueue::Id> AdmissionQueue::preempt(const MemoryCapacity& capacity) {
  std::vector<const Entry*> beside;  // that stay, and those for whom room is made
  for (const Entry& each : entries_)
    if (each.is_admitted && !each.is_preempted) beside.push_back(&each);
  std::vector<Id> told;
  for (Entry& entry : entries_) {
    if (entry.is_admitted || entry.is_paused || waits_for_another(entry)) continue;
    if (!fits(entry, beside, capacity)) {
      const std::vector<Entry*> victims = victims_for(entry, beside, capacity);
      if (victims.empty()) continue;
      entry.passed = kMostPassed;
      for (Entry* victim : victims) {
        victim->is_preempted = true;
        told.push_back(victim->id);
        std::erase(beside, victim);
      }
    }
    beside.push_back(&entry);
  }
  return told;
}

std::vector<AdmissionQueue::Id> AdmissionQueue::admit(const MemoryCapacity& capacity) {
  std::vector<Id> begun;
  std::vector<const Entry*> under_way = admitted();
  std::vector<Entry*> ahead;  // that wait, and have come before
  for (Entry& entry : entries_) {
    if (entry.is_admitted || entry.is_paused) continue;
    if (waits_for_another(entry)) continue;
    const auto passes = [&](const Entry* first) {
      return delays(entry, *first, under_way, capacity);
    };
    const auto may_pass = [&](const Entry* first) {
      return first->passed < kMostPassed || !passes(first);
    };
    // What does not fit, as most do not, is not held against those ahead.
    if (!fits(entry, under_way, capacity) || !std::ranges::all_of(ahead, may_pass)) {
      ahead.push_back(&entry);
      continue;
    }
    for (Entry* first : ahead)
      if (passes(first)) ++first->passed;
    entry.is_admitted = true;
    under_way.push_back(&entry);
    begun.push_back(entry.id);
  }
  if (!begun.empty()) note_others();
  return begun;
}

std::optional<AdmissionQueue::Lack> AdmissionQueue::lack_of(Id id,
                                                            const MemoryCapacity& capacity) const {
  const Entry* const entry = find(id);
  if (entry == nullptr || entry->is_admitted) return std::nullopt;
  const std::vector<const Entry*> under_way = admitted();
  const auto describe = [&](const MemoryNeed& need) {
    Lack lack{need.memory,
              std::min(need.all, need.limit),
              capacity(need.memory),
              together(under_way, need.memory),
              {},
              {},
              0};
    if (const auto kept = kept_.find(need.memory); kept != kept_.end())
      for (const auto& [model, of_model] : kept->second.models)
        if (!calls(need, model)) lack.kept.emplace_back(of_model.name, bytes_of(of_model));
    for (const Entry* each : under_way)
      if (const MemoryNeed* const held = need_of(each->needs, need.memory))
        lack.holders.emplace_back(each->id, std::min(held->all, held->limit));
    if (lack.holders.empty()) lack.wanted = need.least;
    return lack;
  };
  for (const MemoryNeed& need : entry->needs)
    if (!fits(need, *entry, under_way, capacity(need.memory))) return describe(need);
  for (const Entry& first : entries_) {
    if (first.id == id) break;
    if (first.is_admitted || first.is_paused || first.passed < kMostPassed) continue;
    for (const MemoryNeed& need : first.needs)
      if (const MemoryNeed* const mine = need_of(entry->needs, need.memory)) {
        Lack lack = describe(*mine);
        lack.ahead = first.id;
        return lack;
      }
  }
  return std::nullopt;
}

}  // namespace heddle::engine
