// Copies of items in pinned buffers, on their way to a device that keeps nothing else in host
// memory (HostItem::staged). Invariants: a staged copy has a buffer of the pool, and a lease on its
// source as long as it is filled; one that nobody reads stays full only while somebody is expected
// to come for it. Under the lock of host_monitor.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "engine/memory/host_monitor.h"
#include "engine/memory/lease_book.h"
#include "engine/memory/page_cache.h"
#include "engine/memory/read_queue.h"
#include "engine/memory/staging_pool.h"

namespace heddle::engine {

class StagedCopies {
 public:
  using Lock = HostMonitor::Lock;
  using Reader = std::shared_ptr<const Device>;
  using Buffer = std::unique_ptr<HostBuffer>;

  StagedCopies(HostMonitor& monitor, PageCache& cache, StagingPool& pool, ReadQueue& queue,
               LeaseBook& leases)
      : monitor_(monitor), cache_(cache), pool_(pool), queue_(queue), leases_(leases) {}

  bool passes_through(const HostItem& item, const Device& reader) const;
  // What comes once is read right into a buffer; what comes again, into memory where it stays, and
  // so is what would keep others out of the buffers.
  bool is_staged_ahead(const HostItem& item, const ExpectedParts& parts) const;

  // The item's bytes for the reader in a buffer, if there is one: else they are taken from where
  // they are, which is only slower. REQUIRES: a lease on the source, by hold; it has just been
  // started.
  void take(Lock& lock, HostHold& hold, const Reader& reader);
  // A buffer for the item; nullptr: there is none, and reading ahead there is none now. The item is
  // kept by the caller.
  Buffer take_buffer(Lock& lock, HostItem& item, const Reader& reader, ReadPriority priority);
  // A copy that is to be filled from `source`. Where it throws, the buffer is idle.
  HostCopy& stage(Lock& lock, HostItem& item, PageCache::Copy source, const Device& reader,
                  Buffer buffer);
  // REQUIRES: the source is there, or was given room and nobody reads it yet.
  void fill(HostItem& item, HostCopy& staged, ReadPriority priority);
  // REQUIRES: its state is known, and nobody reads it any more. The item may be gone afterwards.
  void finish_filling(Lock& lock, HostItem& item, HostCopy& staged);
  // Nobody will read a source that was to be read into a buffer: others that wait for it are told
  // of the exception under way.
  void fail_unassigned(HostCopy& source);

  // Ends a lease. The item may be gone afterwards.
  void release(Lock& lock, const HostHold& hold);
  // Ends the leases whose event has passed. False: there is none.
  bool release_passed(Lock& lock);
  // What was filled ahead and is wanted last, of one reader or of any, in a buffer of `least` to
  // `most` bytes, goes; it is filled again when it is asked for. False: there is none.
  bool evict_one(Lock& lock, const Device* reader, std::uint64_t least = 0,
                 std::uint64_t most = StagingPool::kAnySize);
  // One goes that nobody reads or will come for. False: there is none.
  bool evict_unexpected(Lock& lock, HostItem& item);

 private:
  using Staged = std::map<const Device*, HostCopy>::iterator;
  using Found = std::optional<Buffer>;  // nothing: look again
  // What kind of buffer an item needs, and what there is.
  struct Demand {
    std::uint64_t wanted = 0;  // bytes; the item itself may do with less
    std::uint64_t most = 0;    // that a buffer for it may have
    StagingPool::Supply supply;
    bool is_enough = false;  // no more are to be made for the device
  };
  std::uint64_t buffer_bytes(const HostItem& item, const Device& reader) const;
  Staged find(HostItem& item, PageCache::Copy source, const Device& reader) const;
  void assign(HostItem& item, HostHold& hold);
  Buffer make_buffer(Lock& lock, HostItem& item, const Reader& reader, const Demand& demand,
                     ReadPriority priority);
  Found take_ahead(Lock& lock, HostItem& item, const Reader& reader, const Demand& demand);
  Found take_now(Lock& lock, HostItem& item, const Reader& reader, const Demand& demand);
  Found await_buffer(Lock& lock, const HostItem& item, const Reader& reader, bool is_awaited);
  bool is_any_to_come_free() const { return leases_.is_pending() || queue_.reading() > 0; }
  void unstage(Lock& lock, HostItem& item, Staged staged);

  HostMonitor& monitor_;
  PageCache& cache_;
  StagingPool& pool_;
  ReadQueue& queue_;
  LeaseBook& leases_;
};

}  // namespace heddle::engine
