// Who has leases on bytes in host memory, and when they end. Invariant: every lease is with a
// thread that holds it, or pending until an event has passed. And who may take room: one thread at
// a time, in the order in which they came, because two that each hold half of what they need would
// wait for each other for ever. Under the lock of host_monitor.h.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "engine/device/device.h"
#include "engine/memory/host_item.h"
#include "engine/memory/host_monitor.h"

namespace heddle::engine {

// A lease on one copy of an item.
struct HostHold {
  HostItem* item = nullptr;
  HostCopy HostItem::*copy = nullptr;
  HostCopy* staged = nullptr;  // the item's, for the reader
};

class LeaseBook {
 public:
  using Lock = HostMonitor::Lock;
  // Leases that end when an event has passed.
  struct Pending {
    std::shared_ptr<const Device> device;  // outlives its event
    std::shared_ptr<const Event> passed;
    std::vector<HostHold> holds;
  };
  using PendingList = std::list<Pending>;  // moved about without taking memory

  explicit LeaseBook(HostMonitor& monitor) : monitor_(monitor) {}

  // A thread holds a lease whose end is not known; and does not, or not any more.
  void add_holder(std::thread::id thread) { holders_.insert(thread); }
  void remove_holder(std::thread::id thread);
  // `one` has one element.
  void add_pending(PendingList& one);
  // Those whose event has passed; events are asked without the lock.
  PendingList take_passed(Lock& lock);
  // Leases will end without any thread's doing.
  bool has_pending() const { return !pending_.empty(); }
  bool is_pending() const { return has_pending() || polling_ > 0; }
  // Some thread holds leases and waits for nothing here.
  bool is_held_by_others() const;

  // While it lives, nobody else takes room.
  class AdmissionTicket {
   public:
    AdmissionTicket(LeaseBook& book, Lock& lock);
    ~AdmissionTicket();
    AdmissionTicket(const AdmissionTicket&) = delete;

   private:
    LeaseBook& book_;
    const std::multiset<std::thread::id>::iterator self_;
    const std::uint64_t ticket_;  // the last: nothing fails once the others wait for it
  };
  bool has_turns() const { return served_ticket_ != next_ticket_; }

 private:
  HostMonitor& monitor_;
  PendingList pending_;
  unsigned polling_ = 0;                    // threads that look at what was pending
  std::multiset<std::thread::id> holders_;  // of leases whose end is not known
  std::multiset<std::thread::id> waiting_;  // have a turn, or wait for it
  std::uint64_t next_ticket_ = 0, served_ticket_ = 0;
};

}  // namespace heddle::engine
