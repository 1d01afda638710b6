// How much of the host's memory weights may take: the one place through which every byte of it goes
// that is taken and given back. A limit of its own, or the ledger of host memory, where devices
// that compute in host memory take theirs from, too. Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/guarded.h"
#include "engine/memory/ledger.h"

namespace heddle::core {

class HostRoom {
 public:
  static constexpr std::uint64_t kUnlimited = Ledger::kNoLimit;

  explicit HostRoom(std::uint64_t limit_bytes = kUnlimited)
      : HostRoom(std::make_shared<Ledger>("host", Ledger::Limits{.budget = limit_bytes})) {}
  explicit HostRoom(std::shared_ptr<Ledger> ledger) : ledger_(std::move(ledger)) {}

  // Asks the driver what is free where it is time to. For those who call reserve() and has(),
  // before they take a lock: neither of the two asks anybody.
  void refresh() { ledger_->poll_all_when_due(); }
  // False, and nothing is taken, where that would be more than the limit. Nobody else lets go for
  // it.
  bool reserve(std::uint64_t bytes) {
    if (!ledger_->try_take_unasked(bytes)) return false;
    ledger_->hold(kHolder, bytes);
    const auto use = use_.lock();
    use->held += bytes;
    use->peak = std::max(use->peak, use->held);
    return true;
  }
  void release(std::uint64_t bytes) {
    ledger_->let_go(kHolder, bytes);
    ledger_->give_back(bytes);
    use_.lock()->held -= bytes;
  }
  // Whether reserve() would find so much now.
  bool has(std::uint64_t bytes) const { return ledger_->room_unasked() >= bytes; }
  // Lets others go so that it would. False: they cannot. With no lock held that they might take.
  bool make(std::uint64_t bytes, const std::string& what) {
    try {
      ledger_->take(bytes, what);
    } catch (const Error&) {
      return false;
    }
    ledger_->give_back(bytes);
    return true;
  }

  std::uint64_t limit() const { return ledger_->budget(); }
  std::uint64_t held() const { return use_.lock()->held; }  // by weights
  std::uint64_t peak() const { return use_.lock()->peak; }  // the highest held() so far

 private:
  static constexpr Holder kHolder{Held::staging, 0};
  struct Use {
    std::uint64_t held = 0, peak = 0;
  };
  const std::shared_ptr<Ledger> ledger_;
  Guarded<Use> use_;
};

}  // namespace heddle::core
