// Which parts of files are in host memory: as pages of their mapping, or in memory of their own,
// pinned, or plain where the file is larger than all that may be held. Invariants: everything here
// has room (host_budget.h) from before it is read until it has gone; what has a lease does not go.
// Evicts what will be wanted last, as far as anybody said, and of what nobody expects the least
// recently used. Under the lock of host_monitor.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/memory/host_budget.h"
#include "engine/memory/host_item.h"
#include "engine/memory/host_monitor.h"
#include "engine/memory/read_queue.h"
#include "engine/memory/staging_pool.h"

namespace heddle::engine {

class PageCache {
 public:
  using Lock = HostMonitor::Lock;
  using Copy = HostCopy HostItem::*;
  // under_way: it is read, or is there, by whomever. again: something has changed, or there is no
  // memory of this kind; the caller chooses again.
  enum class Started { under_way, again, no_room };
  using FileKey = std::pair<FileIdentity, std::uint64_t>;         // and its opening
  using Key = std::tuple<FileKey, std::uint64_t, std::uint64_t>;  // file, offset, bytes
  struct Counts {
    std::uint64_t read_first = 0;  // bytes that came from files for the first time
    std::uint64_t read_again = 0;
    std::uint64_t evicted = 0;  // bytes of parts, as often as they were
  };

  PageCache(HostMonitor& monitor, HostBudget& budget, StagingPool& pool, ReadQueue& queue)
      : monitor_(monitor), budget_(budget), pool_(pool), queue_(queue) {}

  // ---- items ----
  // The part's item, or the whole tensor's, when that is held: its rows are there, too.
  HostItem& item_of(const FilePart& part);
  HostItem& own_item_of(const FilePart& part);
  // The one that would give it without being made; nullptr: there is none.
  HostItem* find(const FilePart& part) const;
  HostItem* find(const Key& key) const;
  static Key key_of(const HostItem& item);
  const std::map<Key, std::unique_ptr<HostItem>>& items() const { return items_; }
  Copy choose_copy(const HostItem& item, const Device& reader) const;
  // Whether a file is larger than all that may be held: it does not lie in its mapping.
  bool is_tight(const TensorFile& file) const;
  void mark_used(HostItem& item) { item.last_use = ++clock_; }

  // ---- what comes ----
  void add_expected(ExpectedParts& parts) { expected_.push_back(&parts); }
  void remove_expected(const ExpectedParts& parts) { std::erase(expected_, &parts); }
  std::span<ExpectedParts* const> expected() const { return expected_; }
  // A part is asked for: what stood before it is not wanted any more.
  void advance(const FilePart& part, const Device& reader);

  // ---- loading ----
  // Takes room and queues the copy to be read. `is_assigned_later`: of pages, the caller says at
  // once who reads them. REQUIRES: a lease on the copy.
  Started start(Lock& lock, HostItem& item, Copy which, const std::shared_ptr<const Device>& reader,
                ReadPriority priority, bool is_assigned_later = false);
  // The room that start() takes.
  std::uint64_t bytes_to_start(const HostItem& item, Copy which) const {
    return bytes_to_start(item, which, is_tight(*item.file));
  }
  void count_read(const HostItem& item, std::uint64_t offset, std::uint64_t bytes);

  // ---- giving back ----
  // One lease less. After the last, what is of no use goes; the item may be gone afterwards.
  void release(Lock& lock, HostItem& item, Copy which);
  // A copy goes that has no lease and is of no use, and the item with it when nothing of it is
  // left.
  void drop_if_useless(Lock& lock, HostItem& item, Copy which);
  void drop_if_idle(HostItem& item);
  // What is wanted last goes, when others are wanted before it than `wanted_in`; without it,
  // anything that nobody uses. False: nothing can go.
  bool evict_one(Lock& lock, std::optional<std::uint64_t> wanted_in);
  // A copy goes that this device has pinned and nobody uses. False: there is none.
  bool evict_pinned_by(Lock& lock, const Device& device);
  bool has_pinned_by(const Device& device) const;
  // REQUIRES: nobody has a lease on it or reads into it, or will. The item may be gone afterwards.
  void evict(Lock& lock, HostItem& item, Copy which);
  // Something that was to be read ahead, and that nobody reads just now or waits for.
  bool abandon_one(Lock& lock);
  // Something is loading that goes, if it has to, as soon as it is there.
  bool is_loading_ahead() const;
  // Somebody else has asked for room: nothing is read ahead into what goes until it is asked for.
  void set_others_lack_room(bool lack) { others_lack_room_ = lack; }
  bool do_others_lack_room() const { return others_lack_room_; }

  // ---- figures ----
  const Counts& counts() const { return counts_; }
  Error out_of_memory(const std::string& name, std::uint64_t bytes) const;

 private:
  bool is_to_be_pinned(const HostItem& item, const Device& reader) const;
  bool is_of_no_use(const HostItem& item, const HostCopy& copy) const;
  std::uint64_t bytes_to_start(const HostItem& item, Copy which, bool is_direct) const;
  bool make_memory(Lock& lock, HostItem& item, const std::shared_ptr<const Device>& pinned_by,
                   HostBytes budget);

  HostMonitor& monitor_;
  HostBudget& budget_;
  StagingPool& pool_;
  ReadQueue& queue_;
  std::map<FileKey, HostFile> files_;
  std::map<Key, std::unique_ptr<HostItem>> items_;
  std::vector<ExpectedParts*> expected_;
  std::uint64_t clock_ = 0;  // of uses
  Counts counts_;
  bool others_lack_room_ = false;
};

}  // namespace heddle::engine
