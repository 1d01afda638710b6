// How much of the host's memory weights may take: the one place through which every byte of it goes
// that is taken and given back. A limit of its own, or the ledger of host memory, where devices
// that compute in host memory take theirs from, too. Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engine/base/guarded.h"
#include "engine/memory/ledger.h"

namespace heddle::engine {

class HostBudget;

// Bytes of the room that somebody has; they go back in the end. One thread at a time; the room
// outlives it.
class HostBytes {
 public:
  HostBytes() = default;
  HostBytes(HostBytes&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), taken_(std::move(other.taken_)) {}
  HostBytes& operator=(HostBytes&& other) noexcept {
    if (this == &other) return *this;
    give_back();
    budget_ = std::exchange(other.budget_, nullptr);
    taken_ = std::move(other.taken_);
    return *this;
  }
  ~HostBytes() { give_back(); }
  std::uint64_t bytes() const { return taken_.bytes(); }
  void give_back() { give_back(bytes()); }
  void give_back(std::uint64_t bytes);  // some of them. REQUIRES: there are so many
  // Takes over those of another, of the same room.
  void add(HostBytes&& other) {
    if (budget_ == nullptr) budget_ = other.budget_;
    taken_.add(std::move(other.taken_));
  }

 private:
  friend class HostBudget;
  HostBytes(HostBudget& budget, TakenBytes taken) : budget_(&budget), taken_(std::move(taken)) {}
  HostBudget* budget_ = nullptr;
  TakenBytes taken_;
};

class HostBudget {
 public:
  static constexpr std::uint64_t kUnlimited = Ledger::kNoLimit;

  explicit HostBudget(std::uint64_t limit_bytes = kUnlimited)
      : HostBudget(std::make_shared<Ledger>("host", Ledger::Limits{.budget = limit_bytes})) {}
  explicit HostBudget(std::shared_ptr<Ledger> ledger) : ledger_(std::move(ledger)) {}

  // Asks the driver what is free where it is time to. For those who call reserve() and has(),
  // before they take a lock: neither of the two asks anybody.
  void refresh() { ledger_->poll_all_when_due(); }
  // Nothing, where that would be more than the limit. Nothing is evicted for it.
  [[nodiscard]] std::optional<HostBytes> reserve(std::uint64_t bytes) {
    auto taken = ledger_->try_take_unasked(bytes);
    if (!taken) return std::nullopt;
    taken->tag({MemoryKind::staging, 0});
    const auto use = use_.lock();
    use->held += bytes;
    use->peak = std::max(use->peak, use->held);
    return HostBytes(*this, std::move(*taken));
  }
  // Whether reserve() would find so much now.
  bool has(std::uint64_t bytes) const { return ledger_->available_unasked() >= bytes; }
  // Lets others go so that it would. False: they cannot. With no lock held that they might take.
  bool make(std::uint64_t bytes, const std::string& what) {
    try {
      const TakenBytes taken = ledger_->take(bytes, what);  // and gives it back at once
    } catch (const Error&) {
      return false;
    }
    return true;
  }

  std::uint64_t limit() const { return ledger_->budget(); }
  std::uint64_t held() const { return use_.lock()->held; }              // by weights
  std::uint64_t peak() const { return use_.lock()->peak; }              // the highest held() so far
  std::uint64_t given_back() const { return use_.lock()->given_back; }  // by weights, ever

 private:
  friend class HostBytes;
  struct Use {
    std::uint64_t held = 0, peak = 0, given_back = 0;
  };
  const std::shared_ptr<Ledger> ledger_;
  Guarded<Use> use_;
};

// In this order: what is held never seems more than the limit, and what was given back is there.
inline void HostBytes::give_back(std::uint64_t bytes) {
  if (budget_ == nullptr || bytes == 0) return;
  budget_->use_.lock()->held -= bytes;
  taken_.give_back(bytes);
  budget_->use_.lock()->given_back += bytes;
}

}  // namespace heddle::engine
