// How much of the host's memory weights may take: the one place through which every byte of it goes
// that is taken and given back. Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/base/guarded.h"

namespace heddle::core {

class HostRoom {
 public:
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

  explicit HostRoom(std::uint64_t limit_bytes = kUnlimited) : limit_(limit_bytes) {}

  // False, and nothing is taken, where that would be more than the limit.
  bool reserve(std::uint64_t bytes) {
    const auto use = use_.lock();
    if (bytes > limit_ || use->held > limit_ - bytes) return false;
    use->held += bytes;
    use->peak = std::max(use->peak, use->held);
    return true;
  }
  bool has(std::uint64_t bytes) const {
    const std::uint64_t held = use_.lock()->held;
    return held <= limit_ && bytes <= limit_ - held;
  }
  void release(std::uint64_t bytes) { use_.lock()->held -= bytes; }

  std::uint64_t limit() const { return limit_; }
  std::uint64_t held() const { return use_.lock()->held; }
  std::uint64_t peak() const { return use_.lock()->peak; }  // the highest held() so far

 private:
  struct Use {
    std::uint64_t held = 0, peak = 0;
  };
  const std::uint64_t limit_;
  Guarded<Use> use_;
};

}  // namespace heddle::core
