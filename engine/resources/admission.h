// Admission of runs to the memories that they share: a run enters before it takes anything, and
// leaves when all that it had is given back. AdmissionQueue decides who begins. What a run needs is
// counted only once there is another one. Any thread; no lock is held while anything is counted, a
// driver is asked, or a run is woken.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "engine/base/guarded.h"
#include "engine/resources/admission_queue.h"

namespace heddle::engine {

class Admission {
 public:
  using Id = AdmissionQueue::Id;
  using CountNeeds = std::function<std::vector<MemoryNeed>()>;  // any thread

  // Before any run enters. `capacity`: any thread; may ask a driver.
  void set_memories(std::uint32_t devices, std::uint32_t memories, MemoryCapacity capacity);

  struct Request {
    Id id = 0;
    int priority = 0;
    CountNeeds needs;            // what it refers to lives until the ticket goes
    std::function<void()> wake;  // any thread, without locks; to look at the ticket again
    bool counts_alone = false;   // its needs are counted, and must fit, though nobody else is there
    Id after = 0;                // a run that begins before it, if it is there
    bool at_front = false;       // it has waited before
    // Any thread, without locks: a run of a higher priority waits for what this one has. It may
    // give that back. Empty: it does not.
    std::function<void()> preempt = {};
  };

  // A run's place. It leaves when this goes; the admission outlives it.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept : admission_(other.admission_), id_(other.id_) {
      other.admission_ = nullptr;
    }
    Ticket& operator=(Ticket&&) = delete;
    ~Ticket() {
      if (admission_ != nullptr) admission_->leave(id_);
    }
    bool is_admitted() const;
    bool ran_beside_others() const;  // others were under way beside it at some time
    // Memory may have come free that no run held.
    void retry() const { admission_->admit(); }
    void set_paused(bool is_paused) const;
    void begin_anyway() const;
    std::optional<AdmissionQueue::Lack> lack() const;
    // Once each time that a device is idle, and none that waits is placed there: the run may be
    // placed again.
    bool take_idle_device() const;
    // It has nothing any more of what it was admitted for, and waits again, paused: replace_needs()
    // and set_paused(false) come next. REQUIRES: it is admitted.
    void give_back() const;
    // It has been placed anew, and keeps its turn. False: it has been admitted as it was.
    bool replace_needs(CountNeeds needs) const;

   private:
    friend class Admission;
    Ticket(Admission* admission, Id id) : admission_(admission), id_(id) {}
    Admission* admission_ = nullptr;
    Id id_ = 0;
  };
  Ticket enter(Request request);

  // Weights of a model that stay in some memories, whoever comes, until forget(). Nothing: they do.
  // Else where they may not, because a run under way or one that waits would lack memory.
  struct NoRoom {
    std::uint32_t memory = 0;
    std::uint64_t capacity = 0;  // bytes
  };
  std::optional<NoRoom> keep(const Hash128& model, const AdmissionQueue::KeptModel& kept,
                             const std::vector<std::uint32_t>& memories);
  void forget(const Hash128& model, const std::vector<std::uint32_t>& memories);
  // But for `rest`, some of them, which stay on.
  void forget_but(const AdmissionQueue::KeptModel& rest, const Hash128& model,
                  const std::vector<std::uint32_t>& memories);

 private:
  // One that has entered. `needs` is counted, and dropped, under its own mutex.
  struct Member {
    explicit Member(CountNeeds count) : needs(std::move(count)) {}
    Guarded<CountNeeds> needs;  // empty: they are counted, or the run is leaving
    std::function<void()> wake, preempt;
    bool is_counted = false;            // state_
    bool has_idle_device = false;       // state_
    std::set<std::uint32_t> offered{};  // state_; devices that were idle, and which it did not take
  };
  struct State {
    AdmissionQueue queue;
    std::map<Id, std::shared_ptr<Member>> members;
  };
  struct Wakes {
    std::vector<std::shared_ptr<Member>> woken, preempted;
  };

  void leave(Id id) noexcept;
  void admit();
  // Those of members whose needs nobody has counted yet.
  bool count_all();
  Wakes admit_now(State& state, const std::vector<std::uint64_t>& capacities);
  void offer_idle_devices(State& state, Wakes& wakes) const;
  std::vector<std::uint64_t> capacities() const;
  static void wake(const Wakes& wakes);

  std::uint32_t devices_ = 0, memories_ = 0;
  MemoryCapacity capacity_;
  Guarded<State> state_;
};

}  // namespace heddle::engine
