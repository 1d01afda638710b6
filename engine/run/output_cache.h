// What nodes made, kept for later runs under a key of how it was made. When the limit is reached,
// what is cheapest to make again for its bytes goes first. Thread-safe.
#pragma once

#include <boost/container/small_vector.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/guarded.h"
#include "engine/base/hash.h"
#include "engine/tensor/value.h"

namespace heddle::core {

class OutputCache {
 public:
  explicit OutputCache(std::uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  class Reading;
  // Looks many keys up under one lock; keep it short.
  [[nodiscard]] Reading read();

  // `seconds`: what it took to make. Larger than the limit: not kept.
  void add(const Hash128& key, std::span<const Value> outputs, double seconds);
  bool contains(const Hash128& key) const;

  // Forgets every entry of which goes(key, outputs) is true.
  void drop_if(const std::function<bool(const Hash128& key, std::span<const Value> outputs)>& goes);
  void clear();
  std::uint64_t bytes() const;
  std::size_t size() const;

 private:
  struct Entry {
    boost::container::small_vector<Value, 1> outputs;
    std::uint64_t bytes = 0;
    double seconds = 0;
    std::uint64_t last_use = 0;
    double worth() const { return seconds / static_cast<double>(bytes); }
  };
  // What may go, as it was when it was ranked; a heap with the first to go on top.
  struct Candidate {
    double worth;
    std::uint64_t last_use;
    Hash128 key;
    friend auto operator<=>(const Candidate&, const Candidate&) = default;
  };
  struct KeyHash : std::hash<Hash128> {
    using is_avalanching = void;  // the keys are hashes already
  };
  struct State {
    boost::unordered_flat_map<Hash128, std::uint32_t, KeyHash> places;  // in entries
    std::deque<Entry> entries;  // never moved, because a table of them would be large
    std::vector<std::uint32_t> free_places;
    // One for each entry, from the first time on at which the limit was reached.
    std::vector<Candidate> candidates;
    bool is_ranked = false;
    std::uint64_t bytes = 0, clock = 0;
  };
  static void rank(State& state, const Candidate& candidate);
  static Entry evict(State& state);

  const std::uint64_t limit_bytes_;
  Guarded<State> state_;
};

class OutputCache::Reading {
 public:
  // The outputs, as long as this object lives; nothing when the key is not known.
  std::optional<std::span<const Value>> find(const Hash128& key) const;

 private:
  friend class OutputCache;
  explicit Reading(Guarded<State>::Locked<State> state) : state_(std::move(state)) {}
  Guarded<State>::Locked<State> state_;
};

inline OutputCache::Reading OutputCache::read() { return Reading(state_.lock()); }

}  // namespace heddle::core
