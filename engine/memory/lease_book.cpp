#include "engine/memory/lease_book.h"

#include <algorithm>
#include <iterator>

namespace heddle::engine {

void LeaseBook::remove_holder(std::thread::id thread) {
  if (const auto self = holders_.find(thread); self != holders_.end()) holders_.erase(self);
}

void LeaseBook::add_pending(PendingList& one) {
  pending_.splice(pending_.end(), one);
  monitor_.changed.notify_all();
}

LeaseBook::PendingList LeaseBook::take_passed(Lock& lock) {
  PendingList waiting, passed;
  if (pending_.empty()) return passed;
  waiting.swap(pending_);
  ++polling_;
  lock.unlock();
  for (auto one = waiting.begin(); one != waiting.end();) {
    const auto next = std::next(one);
    if (one->passed->done()) {  // an event is its plugin's, and so goes without the lock
      one->passed = nullptr;
      one->device = nullptr;
      passed.splice(passed.end(), waiting, one);
    }
    one = next;
  }
  lock.lock();
  --polling_;
  pending_.splice(pending_.begin(), waiting);
  return passed;
}

bool LeaseBook::is_held_by_others() const {
  return std::ranges::any_of(holders_,
                             [&](std::thread::id tag) { return !waiting_.contains(tag); });
}

LeaseBook::AdmissionTicket::AdmissionTicket(LeaseBook& book, Lock& lock)
    : book_(book),
      self_(book.waiting_.insert(std::this_thread::get_id())),
      ticket_(book.next_ticket_++) {
  book.monitor_.changed.notify_all();  // whoever waits for this thread's leases has to think again
  book.monitor_.changed.wait(lock, [&] { return book.served_ticket_ == ticket_; });
}

LeaseBook::AdmissionTicket::~AdmissionTicket() {
  book_.waiting_.erase(self_);
  ++book_.served_ticket_;
  book_.monitor_.changed.notify_all();
}

}  // namespace heddle::engine
