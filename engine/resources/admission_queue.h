// Which runs may begin, as far as memory goes: a run begins when everything that it needs, in all
// memories at once, fits beside what the runs under way need. A value; one thread at a time;
// Admission has the threads.
//
// The order is that of arrival, a higher priority first. A run that does not fit yet lets others
// pass that take of what it waits for, kMostPassed of them, and then nobody: what becomes free from
// then on is its own, so it does not starve. No deadlock: a run has all that it needs when it
// begins and never waits for more memory, and what else it waits for has begun before it (`after`,
// and nodes that other runs compute; one that it comes after and that gave back what it had takes
// that back from it), so runs under way end; and the first that waits begins when none is under
// way, since what does not fit even then is not asked to wait for runs.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/hash.h"

namespace heddle::engine {

// What a run needs of one memory at a time, in bytes.
struct MemoryNeed {
  std::uint32_t memory = 0;  // an index: of a device, or after them the host
  std::uint64_t least = 0;   // with less it does not run
  std::uint64_t all = 0;     // with so much nothing is streamed
  std::uint64_t own = 0;     // of `all`, without weights
  std::vector<std::pair<Hash128, std::uint64_t>> models;  // weights that it may use, one model at a
                                                          // time; runs share them
  std::uint64_t limit = ~std::uint64_t{0};                // it never takes more
};

// Bytes that all runs together may have of a memory.
using MemoryCapacity = std::function<std::uint64_t(std::uint32_t memory)>;

class AdmissionQueue {
 public:
  static constexpr unsigned kMostPassed = 3;
  using Id = std::uint64_t;

  // At the end of those of its priority. `after`: a run that has come and begins before it; 0, or
  // one that is not there: none. REQUIRES: the id is not there, and above `after`.
  void add(Id id, int priority, std::vector<MemoryNeed> needs, Id after = 0);
  // At once, whatever it needs.
  void add_admitted(Id id, std::vector<MemoryNeed> needs, int priority = 0);
  void remove(Id id);
  // One under way has given back all that it had, and waits again, in its place and paused.
  void give_back(Id id);
  // It keeps its place.
  void set_needs(Id id, std::vector<MemoryNeed> needs);
  // Before all of its priority.
  void move_to_front(Id id);
  void admit_anyway(Id id);
  // One that is paused is passed by, and nobody waits for its sake.
  void set_paused(Id id, bool is_paused);

  // Weights of a model that stay in a memory, whoever comes. Runs share them as they share those of
  // each other, models share those of the same key, and a run that is alone has what they leave.
  struct KeptModel {
    std::string name;                          // for people
    std::map<Hash128, std::uint64_t> weights;  // bytes by key
  };
  // In the place of what was kept of it there; without weights: nothing is any more.
  void keep(std::uint32_t memory, const Hash128& model, KeptModel kept);
  // Whether these might stay there: beside what the runs under way need, and so that each that
  // waits finds the least that it runs with.
  bool may_keep(std::uint32_t memory, const Hash128& model, const KeptModel& kept,
                std::uint64_t capacity) const;

  // Admits whoever may begin now; in their order.
  std::vector<Id> admit(const MemoryCapacity& capacity);

  // Runs under way that are to give back what they have, because one of a higher priority, or one
  // that they come `after`, waits and would fit then: as few and as low ones as will do. Each is
  // told once, and nobody passes the one that it makes room for.
  std::vector<Id> preempt(const MemoryCapacity& capacity);

  bool is_admitted(Id id) const;
  bool is_empty() const { return entries_.empty(); }
  bool is_used(std::uint32_t memory) const;  // by a run under way
  bool ran_beside_others(Id id) const;       // others were under way beside it at some time
  std::vector<Id> waiting() const;           // in their order

  // Why a run waits.
  struct Lack {
    std::uint32_t memory = 0;
    std::uint64_t wanted = 0, capacity = 0;  // bytes; beside what is admitted there
    std::uint64_t taken = 0;                 // by all runs under way, what they share once
    std::vector<std::pair<Id, std::uint64_t>> holders;  // each by itself
    // Models that stay there, and that it does not call; each by itself.
    std::vector<std::pair<std::string, std::uint64_t>> kept;
    Id ahead = 0;  // it would fit, and this one waits for longer; 0: none
  };
  std::optional<Lack> lack_of(Id id, const MemoryCapacity& capacity) const;

 private:
  struct Entry {
    Id id = 0;
    int priority = 0;
    std::vector<MemoryNeed> needs;
    Id after = 0;
    bool is_admitted = false, is_paused = false, ran_beside_others = false;
    bool is_preempted = false;  // it was told to give back what it has
    unsigned passed = 0;
  };
  const Entry* find(Id id) const;
  Entry* find(Id id);
  std::vector<const Entry*> admitted() const;
  void note_others();
  // Of a memory, when these run at once.
  std::uint64_t together(std::span<const Entry* const> runs, std::uint32_t memory) const;
  bool fits(const MemoryNeed& need, const Entry& run, const std::vector<const Entry*>& beside,
            std::uint64_t capacity) const;
  bool fits(const Entry& run, const std::vector<const Entry*>& beside,
            const MemoryCapacity& capacity) const;
  // Bytes that stay in the memory besides what the run itself may use of it.
  std::uint64_t kept_beside(const MemoryNeed& need) const;
  bool waits_for_another(const Entry& entry) const;
  bool comes_after(const Entry& entry, Id before) const;  // through others, too
  // Of those under way, to make room for the run; empty: that will not do.
  std::vector<Entry*> victims_for(const Entry& run, std::vector<const Entry*> beside,
                                  const MemoryCapacity& capacity);
  // Whether `next` takes of what `first` lacks.
  bool delays(const Entry& next, const Entry& first, const std::vector<const Entry*>& admitted,
              const MemoryCapacity& capacity) const;

  static constexpr std::size_t kMostGone = 4096;
  std::list<Entry> entries_;  // in their order; those under way among them
  // Of those that were removed, whom they came after: others may have to wait for their turn to
  // write through them. The oldest are forgotten.
  std::map<Id, Id> gone_;
  struct KeptThere {
    std::map<Hash128, KeptModel> models;
    std::uint64_t bytes = 0;  // of all, what they share once
  };
  std::map<std::uint32_t, KeptThere> kept_;  // by memory
};

}  // namespace heddle::engine
