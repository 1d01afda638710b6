// Pinned buffers that bytes pass through on their way to devices, and plain ones that bytes of
// large files are read into again and again. Invariants: no more is pinned than may be, copies that
// stay included, and of that no more for buffers than their part; a buffer is with whoever took it,
// or idle here. Buffers are used again because pinning memory takes longer than copying into it.
// Under the lock of host_monitor.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine/device/device.h"
#include "engine/memory/host_budget.h"
#include "engine/memory/host_buffer.h"
#include "engine/memory/host_monitor.h"

namespace heddle::engine {

class StagingPool {
 public:
  using Lock = HostMonitor::Lock;
  struct Limits {
    std::uint64_t pinned_bytes = 0;   // at most, staging included
    std::uint64_t staging_bytes = 0;  // of them, for bytes that pass through
    unsigned devices = 1;             // that share them
  };
  static constexpr std::uint64_t kAnySize = std::numeric_limits<std::uint64_t>::max();

  StagingPool(HostMonitor& monitor, HostBudget& budget, Limits limits)
      : monitor_(monitor), budget_(budget), limits_(limits) {}

  std::uint64_t staging_bytes() const { return limits_.staging_bytes; }
  std::uint64_t share() const;  // of one device: bytes
  // Bytes that pinned copies that stay may take together. Needs no lock.
  std::uint64_t most_pinned() const;
  bool can_pin_copy(std::uint64_t bytes) const;
  std::uint64_t pinned() const { return pinned_; }
  // Whether one more buffer of so many bytes is within the limit.
  bool fits(std::uint64_t bytes) const { return staging_ + bytes <= limits_.staging_bytes; }

  // What there is for a device, whoever has it, of the size that an item of so many bytes needs.
  struct Supply {
    std::size_t count = 0;
    std::uint64_t bytes = 0;    // of every size
    bool has_suitable = false;  // one of `least` to `most` bytes
  };
  Supply supply(const Device& reader, std::uint64_t least, std::uint64_t most) const;

  // An idle one: the smallest of `least` to `most` bytes; nullptr: there is none.
  std::unique_ptr<HostBuffer> take_idle(const Device& reader, std::uint64_t least,
                                        std::uint64_t most);
  // Of idle plain ones one of exactly so many bytes, or any.
  std::unique_ptr<HostBuffer> take_idle_plain(std::optional<std::uint64_t> bytes);
  // nullptr: there is no room for it, or no such memory, which `refused` says.
  std::unique_ptr<HostBuffer> make(Lock& lock, const std::shared_ptr<const Device>& reader,
                                   std::uint64_t bytes, bool& refused);
  void set_idle(Lock& lock, std::unique_ptr<HostBuffer> buffer);  // to be used again
  void free(Lock& lock, std::unique_ptr<HostBuffer> buffer);
  // Frees the one that has been idle longest, of all or of those that a device has pinned. False:
  // there is none.
  bool free_one(Lock& lock, const Device* pinned_by = nullptr);

  // Memory for a copy that stays; plain without a device. nullptr: there is no such memory, and the
  // room is given back.
  std::unique_ptr<HostBuffer> make_copy(Lock& lock, const std::shared_ptr<const Device>& pinned_by,
                                        HostBytes budget);
  // A copy that stayed goes: its memory is not counted any more.
  void forget_copy(const HostBuffer& memory);

 private:
  HostMonitor& monitor_;
  HostBudget& budget_;
  const Limits limits_;
  std::vector<std::unique_ptr<HostBuffer>> idle_;
  std::multimap<const Device*, std::uint64_t> made_;  // bytes of the pinned ones that there are
  std::uint64_t staging_ = 0;                         // their sum
  std::uint64_t pinned_ = 0;                          // the same with copies that stay
};

}  // namespace heddle::engine
