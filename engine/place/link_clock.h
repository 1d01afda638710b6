// Copies between the devices of a topology in simulated time, as list scheduling and estimates of a
// call have them: each direction of a link carries one value at a time, beside the computing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/place/costs.h"

namespace heddle::engine {

class LinkClock {
 public:
  explicit LinkClock(const Prices& prices)
      : ends_(std::uint32_t(prices.topology().devices.size()) + 1) {
    for (std::uint32_t from = 0; from < ends_; ++from)
      for (std::uint32_t to = 0; to < ends_; ++to)
        copies_.push_back(prices.copy_rate(device(from), device(to)));
    reset();
  }

  // Ends are devices of the topology, and behind them host memory.
  std::uint32_t ends() const { return ends_; }
  std::uint32_t end_of(std::uint32_t device) const {
    return device == kHostSide ? ends_ - 1 : device;
  }

  // From now on every link is free at 0.
  void reset() { free_at_.assign(copies_.size(), 0); }

  // Whether both ends are one memory: then nothing is copied.
  bool is_shared(std::uint32_t from, std::uint32_t to) const {
    return copies_[from * ends_ + to].is_free();
  }
  // When a value would be there that is made at `made` seconds.
  double arrival(std::uint32_t from, std::uint32_t to, double made, std::uint64_t bytes) const {
    const CopyRate& copy = copies_[from * ends_ + to];
    return copy.is_free() ? made : copy.end(std::max(made, free_at_[from * ends_ + to]), bytes);
  }
  // The same, and the link is busy until then.
  double send(std::uint32_t from, std::uint32_t to, double made, std::uint64_t bytes) {
    const double there = arrival(from, to, made, bytes);
    if (!is_shared(from, to)) free_at_[from * ends_ + to] = there;
    return there;
  }

 private:
  std::uint32_t device(std::uint32_t end) const { return end + 1 == ends_ ? kHostSide : end; }

  const std::uint32_t ends_;
  std::vector<CopyRate> copies_;  // from, to
  std::vector<double> free_at_;   // seconds; from, to
};

}  // namespace heddle::engine
