// What one memory holds, for whom, and how much more it may hold: the budget of a device, or of the
// host. Whoever takes memory from a driver asks here first, so that the budget is never exceeded,
// and others find the headroom that was promised to them. The host's ledger is the parent of those
// of devices that compute in host memory: what they take counts there, too.
//
// available = min(budget - ours, what the driver says is free - headroom), less what is reserved.
// The driver is asked every few seconds, before memory is said to be out, and when it has refused:
// other processes take and free memory as they like, and what they free is used from the next
// question on.
//
// Thread-safe. No lock is held while the driver is asked or room is made.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/guarded.h"
#include "engine/memory/eviction_order.h"
#include "engine/memory/reservation.h"

namespace heddle::engine {

struct LedgerReport {
  struct Line {
    MemoryKind kind = MemoryKind::values;
    std::string owner;  // "" : nobody by name
    std::uint64_t bytes = 0;
    std::uint64_t pinned = 0;  // of them, in use now: they cannot be evicted
  };
  // What was asked to go for want of room, and has given bytes back.
  struct Evicted {
    std::uint64_t times = 0, bytes = 0;
  };
  std::string name;          // "cuda:0", "host"
  std::uint64_t budget = 0;  // bytes; Ledger::kNoLimit: none
  std::uint64_t headroom = 0;
  std::uint64_t taken = 0;      // from the driver, by us
  std::uint64_t peak = 0;       // the most that was taken at a time
  std::uint64_t reserved = 0;   // claimed, and not taken yet
  std::uint64_t available = 0;  // that is left
  std::optional<std::uint64_t>
      driver_free;         // when it was asked last, less what we have taken since
  std::vector<Line> held;  // most bytes first
  std::array<Evicted, kEvictionNames.size()> evicted{};  // by EvictionOrder
};

class Ledger {
 public:
  static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

  struct Limits {
    std::uint64_t budget = kNoLimit;
    std::uint64_t headroom = 0;  // bytes of what the driver has free that stay free for others
    double poll_seconds = 2;
    std::function<double()> now;  // monotonic seconds, any thread; empty: the system's clock
  };
  // Bytes that the driver has free now; any thread; may throw. Empty: nobody is asked.
  using Poll = std::function<std::uint64_t()>;

  explicit Ledger(std::string name, Limits limits, Poll poll = {},
                  std::shared_ptr<Ledger> parent = nullptr);
  explicit Ledger(std::string name) : Ledger(std::move(name), Limits()) {}
  Ledger(const Ledger&) = delete;

  const std::string& name() const { return name_; }
  Ledger* parent() const { return parent_.get(); }  // nullptr: none
  const std::shared_ptr<Ledger>& shared_parent() const { return parent_; }
  std::uint64_t headroom() const { return limits_.headroom; }
  std::uint64_t budget() const;  // with the caps in force
  // Bytes that could be had, parents included: without evicting anything.
  std::uint64_t available();
  // The same if everything of ours were evicted: what one who comes alone may use.
  std::uint64_t most();
  // The driver is asked now, by this thread.
  void poll_now();
  // The same where it is time to, of parents, too.
  void poll_all_when_due() { poll_all_after(limits_.poll_seconds); }
  // The same where what is known is so many seconds old.
  void poll_all_after(double seconds);

  // Takes bytes, of a reservation first. Nothing: they are not there; nothing is evicted for them.
  [[nodiscard]] std::optional<TakenBytes> try_take(std::uint64_t bytes,
                                                   Reservation* from = nullptr);
  // The same by what is known already, for those who hold a lock: they call poll_all_when_due()
  // before. And what it would find.
  [[nodiscard]] std::optional<TakenBytes> try_take_unasked(std::uint64_t bytes,
                                                           Reservation* from = nullptr);
  std::uint64_t available_unasked() const;
  // The same, letting others go where it has to. Throws out_of_memory with the ledger. `what`:
  // "weights of single.17".
  [[nodiscard]] TakenBytes take(std::uint64_t bytes, std::string_view what,
                                Reservation* from = nullptr);
  // Claims room for what is taken a little later. Throws out_of_memory.
  Reservation reserve(std::uint64_t bytes, std::string_view what);
  std::optional<Reservation> try_reserve(std::uint64_t bytes);

  // The driver has refused so many bytes that there should have been: asks it, and evicts.
  // False: nothing could go.
  bool after_refusal(std::uint64_t bytes);
  Error out_of_memory(std::uint64_t bytes, std::string_view what,
                      std::string_view cause = {}) const;

  // Whoever can free memory: called with the bytes that are missing, on the thread that needs them,
  // in the order of `priority`; frees what it can. `who` names it for remove_evict_callback(),
  // after which it is not called any more; REQUIRES: by then nobody takes.
  using EvictCallback = std::function<void(std::uint64_t missing)>;
  void on_shortage(EvictionOrder priority, const void* who, EvictCallback evict);
  void remove_evict_callback(const void* who);

  // Another limit beside the budget, as long as it lives: what a workflow allows itself.
  class Cap {
   public:
    Cap() = default;
    Cap(Ledger& ledger, std::uint64_t bytes);
    Cap(Cap&& other) noexcept
        : ledger_(std::exchange(other.ledger_, nullptr)), bytes_(other.bytes_) {}
    Cap& operator=(Cap&& other) noexcept;
    ~Cap();

   private:
    Ledger* ledger_ = nullptr;
    std::uint64_t bytes_ = 0;
  };

  // Who holds what (TaggedBytes), and how much of it is in use; no limit depends on it.
  std::uint32_t owner(std::string_view name);
  void pin(MemoryTag tag, std::uint64_t bytes);
  void unpin(MemoryTag tag, std::uint64_t bytes);

  LedgerReport report() const;
  std::string figures() const;  // for people: the budget, what the driver has free, who holds what

  // How often the driver was asked: for tests.
  std::uint64_t polls() const { return state_.lock()->polls; }
  // Whether others have taken so much that the headroom is not there. Asks the driver when it is
  // time to.
  bool is_pressed();

 private:
  friend class Reservation;
  friend class TaggedBytes;
  friend class TakenBytes;
  struct Amount {
    std::uint64_t bytes = 0, pinned = 0;
  };
  struct Evictor {
    EvictionOrder priority;
    const void* who;
    EvictCallback evict;
  };
  struct State {
    std::uint64_t taken = 0, claimed = 0, peak = 0;
    bool is_polled = false;
    double polled_at = 0;                           // or is to be, by a thread that has begun to
    std::uint64_t driver_free = 0, taken_then = 0;  // when the driver was asked last
    std::uint64_t polls = 0;
    std::vector<std::uint64_t> caps;
    std::vector<std::string> owners{""};
    std::vector<std::array<Amount, kMemoryKinds>> held{1};
    std::vector<Evictor> evictors;
    std::array<LedgerReport::Evicted, kEvictionNames.size()> evicted{};
  };
  std::uint64_t budget(const State& state) const;
  std::int64_t available_by_budget(const State& state) const;
  std::int64_t available_by_driver(const State& state) const;
  std::int64_t available(const State& state) const {
    return std::min(available_by_budget(state), available_by_driver(state));
  }
  // Adds to the claims or to what is taken, here and in the parents; all or nothing.
  bool add(std::uint64_t bytes, std::uint64_t of_claim, bool is_claim);
  void unclaim(std::uint64_t bytes);
  void give_back(std::uint64_t bytes);
  void give_back_refused(std::uint64_t bytes);
  void tag(MemoryTag tag, std::uint64_t bytes);
  void untag(MemoryTag tag, std::uint64_t bytes);
  void poll_when_due() { poll_after(limits_.poll_seconds); }
  void poll_after(double seconds);
  // Bytes that are missing, here alone, for so many more.
  std::uint64_t missing(std::uint64_t bytes) const;
  void make_room(std::uint64_t bytes);
  std::uint64_t evict_once(std::uint64_t bytes);  // bytes given back meanwhile
  void ask(const Evictor& evictor, std::uint64_t bytes);

  const std::string name_;
  const Limits limits_;
  const Poll poll_;
  const std::shared_ptr<Ledger> parent_;
  Guarded<State> state_;
};

}  // namespace heddle::engine
