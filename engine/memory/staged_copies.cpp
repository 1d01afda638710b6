#include "engine/memory/staged_copies.h"

#include <algorithm>
#include <new>
#include <utility>

#include "engine/base/caught.h"
#include "engine/memory/staging_sizes.h"

namespace heddle::engine {

bool StagedCopies::passes_through(const HostItem& item, const Device& reader) const {
  return !reader.host_visible() && reader.has_pinned() && item.bytes > 0 &&
         item.bytes <= pool_.staging_bytes() && !item.pinning_failed;
}

bool StagedCopies::is_staged_ahead(const HostItem& item, const ExpectedParts& parts) const {
  return parts.order == UseOrder::once && !parts.is_later && passes_through(item, *parts.reader) &&
         item.bytes <= std::max(kSmallBuffer, pool_.share() / kLargeBuffers) &&
         cache_.choose_copy(item, *parts.reader) == &HostItem::pages;
}

// ---- taking ----

void StagedCopies::take(Lock& lock, HostHold& hold, const Reader& reader) {
  HostItem& item = *hold.item;
  if ((item.*hold.copy).is_pinned() || !passes_through(item, *reader)) return;
  try {
    auto at = find(item, hold.copy, *reader);
    if (at == item.staged.end()) {
      Buffer buffer = take_buffer(lock, item, reader, ReadPriority::now);
      at = find(item, hold.copy, *reader);
      if (buffer != nullptr && at != item.staged.end()) {  // it has come meanwhile
        pool_.set_idle(lock, std::move(buffer));
        monitor_.changed.notify_all();
      } else if (buffer != nullptr) {
        stage(lock, item, hold.copy, *reader, std::move(buffer));
        at = item.staged.find(reader.get());
      }
    }
    // One that has failed is of no use, and is reported to those who have waited for it.
    if (at != item.staged.end() && at->second.state != CopyState::failed) {
      hold.staged = &at->second;
      ++hold.staged->leases;
    }
    assign(item, hold);
  } catch (...) {
    fail_unassigned(item.*hold.copy);
    throw;
  }
}

// Pinned memory is that for every device.
StagedCopies::Staged StagedCopies::find(HostItem& item, PageCache::Copy source,
                                        const Device& reader) const {
  const auto own = item.staged.find(&reader);
  if (own != item.staged.end()) return own;
  return std::ranges::find_if(item.staged, [&](const auto& entry) {
    return entry.second.source == source && entry.second.state != CopyState::failed;
  });
}

// Somebody reads what nobody reads yet: into the buffer, or without one into the source.
void StagedCopies::assign(HostItem& item, HostHold& hold) {
  HostCopy& source = item.*hold.copy;
  if (hold.staged != nullptr && hold.staged->state == CopyState::absent) {
    if (source.is_unassigned || source.state == CopyState::ready)
      fill(item, *hold.staged, ReadPriority::now);
  } else if (source.is_unassigned && hold.staged != nullptr &&
             hold.staged->state == CopyState::ready) {
    // It was released after the buffer had been filled: nobody has to read it again.
    source.is_unassigned = false;
    source.state = CopyState::ready;
    source.next = item.bytes;
    source.is_unmapped = true;
    monitor_.changed.notify_all();
  } else if (source.is_unassigned) {
    queue_.add(item, source, ReadPriority::now);
    source.is_unassigned = false;
    monitor_.changed.notify_all();
  }
}

void StagedCopies::fail_unassigned(HostCopy& source) {
  if (!source.is_unassigned) return;
  source.is_unassigned = false;
  source.failure = caught_error();
  source.state = CopyState::failed;
  monitor_.changed.notify_all();
}

// ---- buffers ----

// As large as anything of its size that is expected, so that it does for that as well.
std::uint64_t StagedCopies::buffer_bytes(const HostItem& item, const Device& reader) const {
  std::uint64_t bytes = item.bytes;
  if (item.bytes > kSmallBuffer && item.bytes > pool_.share() / kLargeBuffers) return bytes;
  for (const ExpectedParts* parts : cache_.expected())
    if (parts->reader.get() == &reader)
      bytes = std::max(bytes, item.bytes <= kSmallBuffer ? parts->largest_small : parts->largest);
  return bytes;
}

StagedCopies::Buffer StagedCopies::take_buffer(Lock& lock, HostItem& item, const Reader& reader,
                                               ReadPriority priority) {
  // A small item leaves the large buffers to what takes long.
  const std::uint64_t most = item.bytes <= kSmallBuffer ? kSmallBuffer : StagingPool::kAnySize;
  for (;;) {
    if (Buffer idle = pool_.take_idle(*reader, item.bytes, most)) return idle;
    const std::uint64_t wanted = buffer_bytes(item, *reader);
    const StagingPool::Supply supply = pool_.supply(*reader, item.bytes, most);
    const bool is_enough = supply.count >= kMostBuffers || supply.bytes + wanted > pool_.share();
    const Demand demand{wanted, most, supply, is_enough};
    Found found = priority == ReadPriority::ahead ? take_ahead(lock, item, reader, demand)
                                                  : take_now(lock, item, reader, demand);
    if (found) return std::move(*found);
  }
}

StagedCopies::Found StagedCopies::take_ahead(Lock& lock, HostItem& item, const Reader& reader,
                                             const Demand& demand) {
  if (!demand.is_enough) {
    Buffer made = make_buffer(lock, item, reader, demand, ReadPriority::ahead);
    if (made != nullptr || item.pinning_failed) return made;
  }
  // One of a model whose weights were smaller keeps out what does for these.
  const std::uint64_t least = item.bytes <= kSmallBuffer ? 1 : kSmallBuffer + 1;
  Buffer small = pool_.take_idle(*reader, least, item.bytes - 1);
  if (small == nullptr) return Found(nullptr);
  pool_.free(lock, std::move(small));
  return std::nullopt;
}

// One that is there, one more, or one that others give back, in this order where there are enough
// of them; before that one more is made first.
StagedCopies::Found StagedCopies::take_now(Lock& lock, HostItem& item, const Reader& reader,
                                           const Demand& demand) {
  // To fill one again takes less time than to make one.
  if (demand.is_enough && evict_one(lock, reader.get(), item.bytes, demand.most))
    return std::nullopt;
  const bool is_awaited = demand.supply.has_suitable && is_any_to_come_free();
  if (!demand.is_enough || !is_awaited) {
    Buffer made = make_buffer(lock, item, reader, demand, ReadPriority::now);
    if (made != nullptr || item.pinning_failed) return made;
    if (pool_.fits(item.bytes)) {
      if (cache_.evict_one(lock, {})) return std::nullopt;
      return Found(nullptr);  // plain memory does as well, only more slowly
    }
  }
  return await_buffer(lock, item, reader, is_awaited);
}

StagedCopies::Found StagedCopies::await_buffer(Lock& lock, const HostItem& item,
                                               const Reader& reader, bool is_awaited) {
  constexpr std::uint64_t kAny = StagingPool::kAnySize;
  if (item.bytes <= kSmallBuffer)
    if (Buffer idle = pool_.take_idle(*reader, item.bytes, kAny)) return idle;
  if (evict_one(lock, reader.get(), item.bytes, kAny)) return std::nullopt;
  if (!is_awaited && pool_.free_one(lock)) return std::nullopt;
  if (release_passed(lock)) return std::nullopt;
  if (!is_any_to_come_free()) return Found(nullptr);
  monitor_.changed.wait_for(lock, HostMonitor::kBufferPoll);
  return std::nullopt;
}

// As large as is wanted, or else as it has to be. nullptr: there is no room for it, or no such
// memory; where there is none of the item's size, it is noted.
StagedCopies::Buffer StagedCopies::make_buffer(Lock& lock, HostItem& item, const Reader& reader,
                                               const Demand& demand, ReadPriority priority) {
  const bool is_ahead = priority == ReadPriority::ahead;
  for (const std::uint64_t bytes : {demand.wanted, item.bytes}) {
    if (!pool_.fits(bytes)) continue;
    if (is_ahead && demand.supply.bytes + bytes > pool_.share()) continue;
    bool is_refused = false;
    Buffer made = pool_.make(lock, reader, bytes, is_refused);
    if (is_refused) item.pinning_failed = bytes == item.bytes;
    if (made != nullptr || item.pinning_failed) return made;
  }
  return nullptr;
}

// ---- filling ----

HostCopy& StagedCopies::stage(Lock& lock, HostItem& item, PageCache::Copy source,
                              const Device& reader, Buffer buffer) {
  try {
    item.staged.try_emplace(&reader);
  } catch (...) {
    pool_.set_idle(lock, std::move(buffer));
    throw;
  }
  HostCopy& staged = item.staged.at(&reader);
  staged.memory = std::move(buffer);
  staged.source = source;
  staged.next = item.bytes;
  return staged;
}

void StagedCopies::fill(HostItem& item, HostCopy& staged, ReadPriority priority) {
  HostCopy& source = item.*staged.source;
  queue_.add(item, staged, priority);
  staged.reads_first = std::exchange(source.is_unassigned, false);
  staged.state = CopyState::loading;
  ++source.leases;
  monitor_.changed.notify_all();
  monitor_.filling.notify_all();
}

void StagedCopies::finish_filling(Lock& lock, HostItem& item, HostCopy& staged) {
  const auto which = staged.source;
  if (staged.reads_first) {
    HostCopy& source = item.*which;
    source.state = staged.state;
    source.failure = staged.failure;
    source.is_unmapped = true;
  }
  const auto at = std::ranges::find_if(item.staged,
                                       [&](const auto& entry) { return &entry.second == &staged; });
  const bool is_of_use = staged.state == CopyState::ready &&
                         (item.next_use_by(at->first) != kUnexpected || is_wanted_soon(item));
  if (staged.leases == 0 && !is_of_use) {
    pool_.set_idle(lock, std::move(staged.memory));
    item.staged.erase(at);
  }
  monitor_.changed.notify_all();
  cache_.release(lock, item, which);
}

// ---- giving back ----

void StagedCopies::release(Lock& lock, const HostHold& hold) {
  HostItem& item = *hold.item;
  // What is being filled goes when it is full.
  if (hold.staged != nullptr && --hold.staged->leases == 0 &&
      hold.staged->state != CopyState::loading &&
      !(hold.staged->state == CopyState::ready && is_wanted_soon(item)))
    unstage(lock, item, std::ranges::find_if(item.staged, [&](const auto& entry) {
              return &entry.second == hold.staged;
            }));
  cache_.release(lock, item, hold.copy);
}

bool StagedCopies::release_passed(Lock& lock) {
  const LeaseBook::PendingList passed = leases_.take_passed(lock);
  if (passed.empty()) return false;
  for (const LeaseBook::Pending& one : passed)
    for (const HostHold& hold : one.holds) release(lock, hold);
  monitor_.changed.notify_all();
  return true;
}

// REQUIRES: nobody has a lease on it or reads into it. The item may be gone afterwards.
void StagedCopies::unstage(Lock& lock, HostItem& item, Staged at) {
  queue_.remove(at->second);
  HostCopy staged = std::move(at->second);
  item.staged.erase(at);
  pool_.set_idle(lock, std::move(staged.memory));
  monitor_.changed.notify_all();
  if (staged.state != CopyState::loading) return cache_.drop_if_idle(item);
  if (!staged.reads_first) return cache_.release(lock, item, staged.source);
  HostCopy& source = item.*staged.source;
  if (--source.leases == 0) {
    source.next = staged.next;
    return cache_.evict(lock, item, staged.source);
  }
  try {  // others wait for it, and may read it themselves
    queue_.add(item, source, ReadPriority::now);
  } catch (const std::bad_alloc&) {
    source.failure = caught_error();
    source.state = CopyState::failed;
  }
}

bool StagedCopies::evict_one(Lock& lock, const Device* reader, std::uint64_t least,
                             std::uint64_t most) {
  HostItem* last = nullptr;
  Staged which;
  std::uint64_t last_next = 0;
  for (const auto& [key, item] : cache_.items())
    for (auto at = item->staged.begin(); at != item->staged.end(); ++at) {
      const auto& [device, staged] = *at;
      if (staged.leases > 0 || staged.reading > 0) continue;
      if (reader != nullptr && device != reader) continue;
      const std::uint64_t size = staged.memory->bytes();
      if (size < least || size > most) continue;
      const std::uint64_t next = item->next_use_by(device);
      if (last != nullptr && next <= last_next) continue;
      last = item.get();
      which = at;
      last_next = next;
    }
  if (last == nullptr) return false;
  unstage(lock, *last, which);
  return true;
}

bool StagedCopies::evict_unexpected(Lock& lock, HostItem& item) {
  const auto staged = std::ranges::find_if(item.staged, [&](const auto& entry) {
    return entry.second.leases == 0 && entry.second.reading == 0 &&
           item.next_use_by(entry.first) == kUnexpected && !is_wanted_soon(item);
  });
  if (staged == item.staged.end()) return false;
  unstage(lock, item, staged);
  return true;
}

}  // namespace heddle::engine
