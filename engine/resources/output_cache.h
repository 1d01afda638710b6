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
#include "engine/resources/run_work.h"
#include "engine/tensor/value.h"

namespace heddle::engine {

class OutputCache {
 public:
  explicit OutputCache(std::uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  class Reading;
  class Adding;
  // Looks many keys up under one lock; keep it short.
  [[nodiscard]] Reading read();

  // `seconds`: what it took to make. Larger than the limit: not kept. `by`: whose work it may still
  // be; it is found as long as that is not given up.
  void add(const Hash128& key, std::span<const Value> outputs, double seconds, WorkMark by = {});
  bool contains(const Hash128& key) const;

  // Evicts `bytes` that cached values hold in one place, of what is cheapest to make again for
  // its bytes first. there(value, shares): bytes that come free in that place when so many shares
  // of it go, which are all that the cache has; 0 when nothing does. Asked with the cache's lock
  // held. instead(value): the same contents elsewhere, to be kept in its place; nothing: what has
  // it goes. Gives the bytes that came free.
  std::uint64_t make_room(
      std::uint64_t bytes,
      const std::function<std::uint64_t(const Value& value, std::uint32_t shares)>& there,
      const std::function<Value(const Value&)>& instead);

  // Forgets every entry of which goes(key, outputs) is true.
  void drop_if(const std::function<bool(const Hash128& key, std::span<const Value> outputs)>& goes);
  std::uint64_t clear();  // gives the bytes that were held
  std::uint64_t bytes() const;
  std::size_t size() const;

 private:
  struct Entry {
    boost::container::small_vector<Value, 1> outputs;
    std::uint64_t bytes = 0;
    double seconds = 0;
    std::uint64_t last_use = 0;
    WorkMark by;
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
  // Takes the outputs. What has to go for them comes into `dropped`, to be freed after the lock:
  // tensors may take time to go. REQUIRES: the bytes are within the limit.
  void add(State& state, const Hash128& key, std::span<Value> outputs, std::uint64_t bytes,
           double seconds, WorkMark&& by, std::vector<Entry>& dropped);
  static void rank(State& state, const Candidate& candidate);
  static Entry evict(State& state);
  // Replaces the value in the entry of this key, or lets the entry go where `other` is none.
  static Entry replace(State& state, const Hash128& key, const Value& value, const Value& other);

  const std::uint64_t limit_bytes_;
  Guarded<State> state_;
};

class OutputCache::Reading {
 public:
  // The outputs, as long as this object lives; nothing when the key is not known, or when what
  // makes them has been given up. From now on it is not, unless it is `own`, which the caller may
  // give up. `but_of`: nothing of what that run has made, which has this number and `own` work.
  std::optional<std::span<const Value>> find(const Hash128& key, const RunWork* own = nullptr,
                                             std::uint64_t but_of = 0) const;

 private:
  friend class OutputCache;
  explicit Reading(Guarded<State>::Locked<State> state) : state_(std::move(state)) {}
  Guarded<State>::Locked<State> state_;
};

// For one thread that adds much: what is large at once, what is small many at a time. A lock for
// each number would cost more than to make it. What still waits is added by flush() and at the end.
class OutputCache::Adding {
 public:
  explicit Adding(OutputCache& cache) : cache_(cache) {}
  Adding(const Adding&) = delete;
  Adding& operator=(const Adding&) = delete;
  ~Adding() { flush(); }

  // REQUIRES: nobody else looks at these outputs yet, but for who holds shares of his own.
  void add(const Hash128& key, std::span<const Value> outputs, double seconds, WorkMark by = {});
  void flush();
  bool is_empty() const { return made_.empty(); }

 private:
  struct Made {
    Hash128 key;
    std::size_t output_count;
    std::uint64_t bytes;
    double seconds;
    WorkMark by;
  };
  OutputCache& cache_;
  std::vector<Made> made_;
  std::vector<Value> outputs_;  // of all of them
};

inline OutputCache::Reading OutputCache::read() { return Reading(state_.lock()); }

}  // namespace heddle::engine
