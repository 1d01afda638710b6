// The bytes of weights in host memory, for all devices of an engine: one copy, whatever the number
// of devices, read from the file once and kept as long as there is room. For devices that compute
// in host memory it is the file's mapping; for others pinned memory, as far as that goes, and
// beyond it the mapping again, from where bytes pass through a few pinned buffers on their way:
// read into them from the file by several threads, which leaves the mapping's tables as they are.
// Of a file that is larger than all that may be held, it is plain memory instead of the mapping:
// what is evicted soon is read past the kernel's copies, which takes less time and pushes out
// nothing.
//
// Everything held is within a hard limit (host_budget.h): pages of mappings from the moment they
// are read until they are given back, pinned copies, and the buffers. What is evicted when room is
// short, and in which order, eviction_order.h says. What is expected next is read ahead by threads
// of its own.
//
// Here leases are taken, and room is made for them; the parts that do the rest, each with one thing
// to keep right, share one lock (host_monitor.h).
//
// Thread-safe. Outlives every lease and expectation, and is outlived by none of the devices'
// plugins (it holds the devices that it has pinned memory of).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "engine/files/checkpoint.h"
#include "engine/memory/host_budget.h"
#include "engine/memory/host_item.h"
#include "engine/memory/host_monitor.h"
#include "engine/memory/lease_book.h"
#include "engine/memory/page_cache.h"
#include "engine/memory/piece_reader.h"
#include "engine/memory/prefetcher.h"
#include "engine/memory/read_queue.h"
#include "engine/memory/staged_copies.h"
#include "engine/memory/staging_pool.h"

namespace heddle::engine {

class HostWeights;

// The part of a file that rows of a tensor are; all of a tensor without rows.
FilePart file_part(const TensorView& tensor, std::int64_t begin, std::int64_t end);

// Bytes that stay where they are as long as this lives, or until the event that it was told of has
// passed. One thread at a time.
class HostLease {
 public:
  HostLease(const HostLease&) = delete;
  ~HostLease();

  // In the order of the parts that were asked for.
  const std::byte* data(std::size_t part) const { return data_[part]; }
  // That the bytes are pages of, or came from.
  const std::shared_ptr<const TensorFile>& file(std::size_t part) const {
    return holds_[part].item->file;
  }
  // The bytes are read by nobody once `passed`, which has been recorded, is behind its stream: they
  // may go then, whether this lives on or not.
  void end_with(Event passed);
  // No event will tell: it ends with this, and nobody is to wait for the thread that took it.
  void leave() noexcept;

 private:
  friend class HostWeights;
  explicit HostLease(std::shared_ptr<const Device> reader) : reader_(std::move(reader)) {}

  const std::shared_ptr<const Device> reader_;
  HostWeights* owner_ = nullptr;  // nullptr: nothing is to be given back
  std::vector<HostHold> holds_;
  std::vector<const std::byte*> data_;
  std::thread::id thread_;  // that holds it before any event is known
};

struct HostReport {
  std::uint64_t limit = 0;  // HostBudget::kUnlimited: none
  std::uint64_t held = 0, peak = 0;
  std::uint64_t pinned = 0;      // of what is held, staging included
  std::uint64_t read_first = 0;  // bytes that came from files for the first time
  std::uint64_t read_again = 0;
  std::uint64_t evicted = 0;  // bytes of parts, as often as they were
};

class HostWeights {
 public:
  struct Options {
    std::uint64_t pinned_bytes = 0;   // at most, staging included; 0: plain memory only
    std::uint64_t staging_bytes = 0;  // of them, for bytes that pass through
    unsigned staging_devices = 1;     // that share them
    unsigned readers = 2;             // threads that read ahead; 0: nothing is
    unsigned copiers = 0;             // others, that only help to fill pinned memory
    std::uint64_t piece_bytes = std::uint64_t{4} << 20;
    // In groups of rows of so many bytes a matrix passes to a device (weight_rows.h): large enough
    // that a link is used well, small enough for several buffers.
    std::uint64_t group_bytes = std::uint64_t{32} << 20;
    // So far ahead of their use things are read for which others that are expected have to go.
    std::uint64_t ahead_bytes = std::uint64_t{64} << 20;
  };
  HostWeights(std::shared_ptr<HostBudget> budget, Options options);
  ~HostWeights();  // REQUIRES: no lease and no expectation is left
  HostWeights(const HostWeights&) = delete;

  // All of the parts, together, for work on `reader`; waits until they are there, and where room is
  // short until others have released theirs. Throws out_of_memory, with the figures, when there
  // cannot be room; io with file and offset.
  std::shared_ptr<HostLease> get(std::span<const FilePart> parts,
                                 const std::shared_ptr<const Device>& reader);
  // From now on they are wanted in this order, by get() for that reader; it may leave some out.
  [[nodiscard]] Expectation expect(std::span<const FilePart> parts, UseOrder order,
                                   std::shared_ptr<const Device> reader, ReadWatch watch = {}) {
    return prefetcher_.expect(parts, order, std::move(reader), std::move(watch), false);
  }
  // The same, once, by work that begins when what is under way has ended: read as far as that wants
  // nothing more, into room that it leaves.
  [[nodiscard]] Expectation expect_later(std::span<const FilePart> parts,
                                         std::shared_ptr<const Device> reader,
                                         ReadWatch watch = {}) {
    return prefetcher_.expect(parts, UseOrder::once, std::move(reader), std::move(watch), true);
  }

  // Evicts at least so many bytes where it can: what is wanted last first. Waits for streams
  // that still copy from it, not for leases that have no event. Nothing is read ahead into what
  // went before the next get(). The bytes that were evicted.
  std::uint64_t evict(std::uint64_t bytes);
  // Gives back what leases hold whose event has passed. Done by get(), too.
  void reclaim();
  // Frees what this device has pinned, as far as nobody uses it; the bytes are read from their
  // files again when they are wanted. True: nothing of it is left.
  bool release_pinned(const Device& device);
  HostReport report() const;
  // Bytes that pinned copies of parts may take together; buffers that others pass through have the
  // rest of what may be pinned.
  std::uint64_t most_pinned() const { return pool_.most_pinned(); }
  std::uint64_t group_bytes() const { return group_bytes_; }

 private:
  friend class HostLease;
  using Lock = HostMonitor::Lock;

  bool is_here(const FilePart& part, const Device& reader) const;
  void check_fits(std::span<const FilePart> parts) const;
  void take_all(Lock& lock, HostLease& lease, std::span<const FilePart> parts);
  HostHold take_copy(Lock& lock, const FilePart& part, const std::shared_ptr<const Device>& reader,
                     std::span<const HostHold> taken);
  PageCache::Started start(Lock& lock, HostItem& item, PageCache::Copy which,
                           const std::shared_ptr<const Device>& reader,
                           bool is_assigned_later = false);
  void await_ready(Lock& lock, const HostHold& hold, const std::shared_ptr<const Device>& reader);
  void read_or_wait(Lock& lock, const HostItem& item);
  void map(Lock& lock, const HostLease& lease);
  bool evict_one(Lock& lock);
  void await_room(Lock& lock, const HostItem& item, std::uint64_t bytes);

  const std::shared_ptr<HostBudget> budget_;
  const std::uint64_t group_bytes_;
  mutable HostMonitor monitor_;
  LeaseBook leases_;
  StagingPool pool_;
  ReadQueue queue_;
  PageCache cache_;
  StagedCopies staged_;
  PieceReader reader_;
  Prefetcher prefetcher_;
};

}  // namespace heddle::engine
