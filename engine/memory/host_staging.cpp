// Pinned buffers through which bytes pass on their way to a device that keeps nothing else in host
// memory: the part of host_weights.h that has them filled, ahead of who asks where it is known what
// comes next, and finds a buffer for each. Functions that take the lock may give it up meanwhile.
#include <algorithm>
#include <limits>
#include <utility>

#include "engine/base/caught.h"
#include "engine/base/error.h"
#include "engine/memory/host_weights.h"
#include "engine/memory/staging_sizes.h"

namespace heddle::core {

// ---- filling ----

bool HostWeights::passes_through(const HostItem& item, const Device& reader) const {
  return !reader.host_visible() && reader.has_pinned() && item.bytes > 0 &&
         item.bytes <= options_.staging_bytes && !item.pinning_failed;
}

// What comes once is read right into a buffer; what comes again, into memory where it stays, and so
// is what would keep others out of the buffers.
bool HostWeights::is_staged_ahead(const HostItem& item, const ExpectedParts& forecast) const {
  return forecast.order == UseOrder::once && passes_through(item, *forecast.reader) &&
         item.bytes <= std::max(kSmallBuffer, staging_share() / kLargeBuffers) &&
         choose_copy(item, *forecast.reader) == &HostItem::pages;
}

// The item's bytes for the reader in a buffer, if there is one: else they are taken from where they
// are, which is only slower. REQUIRES: a lease on the source, by hold; start() has just been called.
void HostWeights::take_staging(Lock& lock, Hold& hold,
                               const std::shared_ptr<const Device>& reader) {
  try {
    find_staging(lock, hold, reader);
  } catch (...) {
    fail_unassigned((*hold.item).*hold.copy);
    throw;
  }
}

// Nobody will read it: others that wait for it are told.
void HostWeights::fail_unassigned(HostCopy& source) {
  if (!source.is_unassigned) return;
  source.is_unassigned = false;
  source.failure = caught_error();
  source.state = CopyState::failed;
  changed_.notify_all();
}

void HostWeights::find_staging(Lock& lock, Hold& hold,
                               const std::shared_ptr<const Device>& reader) {
  HostItem& item = *hold.item;
  if ((item.*hold.copy).is_pinned() || !passes_through(item, *reader)) return;
  // Pinned memory is that for every device.
  const auto find = [&] {
    const auto own = item.staged.find(reader.get());
    if (own != item.staged.end()) return own;
    return std::ranges::find_if(item.staged, [&](const auto& entry) {
      return entry.second.source == hold.copy && entry.second.state != CopyState::failed;
    });
  };
  auto at = find();
  if (at == item.staged.end()) {
    std::unique_ptr<HostBuffer> buffer = take_buffer(lock, item, reader, Need::now);
    at = find();
    if (buffer != nullptr && at != item.staged.end()) {  // it has come meanwhile
      set_idle(lock, std::move(buffer));
      changed_.notify_all();
    } else if (buffer != nullptr) {
      stage(lock, item, hold.copy, *reader, std::move(buffer));
      at = item.staged.find(reader.get());
    }
  }
  // One that has failed is of no use, and is told to those who have waited for it.
  if (at != item.staged.end() && at->second.state != CopyState::failed) {
    hold.staged = &at->second;
    ++hold.staged->leases;
  }
  HostCopy& source = item.*hold.copy;
  if (hold.staged != nullptr && hold.staged->state == CopyState::absent) {
    if (source.is_unassigned || source.state == CopyState::ready)
      fill(item, *hold.staged, Need::now);
  } else if (source.is_unassigned && hold.staged != nullptr &&
             hold.staged->state == CopyState::ready) {
    // It was let go of after the buffer had been filled: nobody has to read it again.
    source.is_unassigned = false;
    source.state = CopyState::ready;
    source.next = item.bytes;
    source.is_unmapped = true;
    changed_.notify_all();
  } else if (source.is_unassigned) {
    loading_.emplace_front(&item, &source);
    source.is_unassigned = false;
    source.next = 0;
    changed_.notify_all();
  }
}

// REQUIRES: the item has no use that goes on without it, and the reader is one that it passes to.
HostWeights::Ahead HostWeights::stage_ahead(Lock& lock, HostItem& item,
                                            const std::shared_ptr<const Device>& reader,
                                            std::uint64_t wanted_in) {
  HostCopy& pages = item.pages;
  ++pages.leases;
  ++beginning_;
  Ahead ahead = Ahead::begun;
  std::unique_ptr<HostBuffer> buffer;
  try {
    buffer = take_buffer(lock, item, reader, Need::ahead);
  } catch (const std::exception&) {
    item.reading_ahead_failed = true;  // whoever asks for it is told
  }
  if (buffer == nullptr && !item.pinning_failed) {
    // Nothing has changed that anybody waits for: told of it, readers would wake each other for ever.
    --beginning_;
    --pages.leases;
    return Ahead::no_buffer;
  }
  if (buffer == nullptr) {
    ahead = Ahead::begun;
  } else if (item.staged.empty() &&
             (pages.state == CopyState::absent || pages.state == CopyState::ready)) {
    try {
      const Started started =
          start(lock, item, &HostItem::pages, reader, Need::ahead, wanted_in, true);
      if (started == Started::no_room) ahead = Ahead::no_room;
      if (started == Started::under_way) {
        item.keep_plain = true;
        fill(item, stage(lock, item, &HostItem::pages, *reader, std::move(buffer)), Need::ahead);
      }
    } catch (const std::exception&) {
      fail_unassigned(pages);
      item.reading_ahead_failed = true;
    }
  }
  if (buffer != nullptr) set_idle(lock, std::move(buffer));
  --beginning_;
  give_back_one(lock, {&item, &HostItem::pages});
  return ahead;
}

HostCopy& HostWeights::stage(Lock& lock, HostItem& item, HostCopy HostItem::*source,
                             const Device& reader, std::unique_ptr<HostBuffer> buffer) {
  try {
    item.staged.try_emplace(&reader);
  } catch (...) {
    set_idle(lock, std::move(buffer));
    throw;
  }
  HostCopy& staged = item.staged.at(&reader);
  staged.memory = std::move(buffer);
  staged.source = source;
  staged.next = item.bytes;
  return staged;
}

// REQUIRES: the source is there, or was given room and nobody reads it yet.
void HostWeights::fill(HostItem& item, HostCopy& staged, Need need) {
  HostCopy& source = item.*staged.source;
  if (need == Need::now)
    loading_.emplace_front(&item, &staged);
  else
    loading_.emplace_back(&item, &staged);
  staged.reads_first = std::exchange(source.is_unassigned, false);
  staged.state = CopyState::loading;
  staged.next = 0;
  ++source.leases;
  changed_.notify_all();
  filling_.notify_all();
}

// REQUIRES: its state is known, and nobody reads it any more. The item may be gone afterwards.
void HostWeights::finish_filling(Lock& lock, HostItem& item, HostCopy& staged) {
  const auto which = staged.source;
  if (staged.reads_first) {
    HostCopy& source = item.*which;
    source.state = staged.state;
    source.failure = staged.failure;
    source.is_unmapped = true;
  }
  const auto at = std::ranges::find_if(item.staged,
                                       [&](const auto& entry) { return &entry.second == &staged; });
  const bool is_of_use =
      staged.state == CopyState::ready &&
      (item.next_use_by(at->first) != kUnexpected || is_wanted_soon(item));
  if (staged.leases == 0 && !is_of_use) {
    set_idle(lock, std::move(staged.memory));
    item.staged.erase(at);
  }
  changed_.notify_all();
  give_back_one(lock, {&item, which});
}

// REQUIRES: nobody has a lease on it or reads into it. The item may be gone afterwards.
void HostWeights::unstage(Lock& lock, HostItem& item, Staged at) {
  std::erase_if(loading_, [&](const auto& entry) { return entry.second == &at->second; });
  HostCopy staged = std::move(at->second);
  item.staged.erase(at);
  set_idle(lock, std::move(staged.memory));
  changed_.notify_all();
  if (staged.state != CopyState::loading) return drop_if_idle(item);
  if (!staged.reads_first) return give_back_one(lock, {&item, staged.source});
  HostCopy& source = item.*staged.source;
  if (--source.leases == 0) {
    source.next = staged.next;
    return let_go_of(lock, item, staged.source);
  }
  source.next = 0;  // others wait for it, and may read it themselves
  try {
    loading_.emplace_front(&item, &source);
  } catch (const std::bad_alloc&) {
    source.failure = caught_error();
    source.state = CopyState::failed;
  }
}

// What was filled ahead and is wanted last, of one reader or of any, in a buffer of `least` to
// `most` bytes; it is filled again when it is asked for.
bool HostWeights::unstage_one(Lock& lock, const Device* reader, std::uint64_t least,
                              std::uint64_t most) {
  HostItem* last = nullptr;
  Staged which;
  std::uint64_t last_next = 0;
  for (const auto& [key, item] : items_)
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

// ---- buffers ----

bool HostWeights::drop_idle_staging(Lock& lock) {
  std::unique_ptr<HostBuffer> buffer = idle_staging_.drop();
  if (buffer == nullptr) return false;
  free_buffer(lock, std::move(buffer));
  return true;
}

void HostWeights::set_idle(Lock& lock, std::unique_ptr<HostBuffer> buffer) {
  try {
    idle_staging_.give(buffer);
  } catch (const std::bad_alloc&) {
    free_buffer(lock, std::move(buffer));
  }
}

void HostWeights::free_buffer(Lock& lock, std::unique_ptr<HostBuffer> buffer) {
  const std::uint64_t bytes = buffer->bytes();
  const std::uint64_t pinned = buffer->pinned_by() == nullptr ? 0 : bytes;
  const auto [begin, end] = staging_made_.equal_range(buffer->pinned_by());
  const auto made = std::find_if(begin, end, [&](const auto& one) { return one.second == bytes; });
  if (made != end) staging_made_.erase(made);
  ++leaving_;
  lock.unlock();
  buffer.reset();
  lock.lock();
  --leaving_;
  staging_bytes_ -= pinned;
  pinned_bytes_ -= pinned;
  changed_.notify_all();
}

// As large as anything of its size that is expected, so that it does for that as well.
std::uint64_t HostWeights::buffer_bytes(const HostItem& item, const Device& reader) const {
  std::uint64_t bytes = item.bytes;
  if (item.bytes > kSmallBuffer && item.bytes > staging_share() / kLargeBuffers) return bytes;
  for (const ExpectedParts* forecast : forecasts_)
    if (forecast->reader.get() == &reader)
      bytes = std::max(bytes, item.bytes <= kSmallBuffer ? forecast->largest_small
                                                         : forecast->largest);
  return bytes;
}

// nullptr: there is none, and reading ahead there is none now. The item is kept by the caller.
std::unique_ptr<HostBuffer> HostWeights::take_buffer(Lock& lock, HostItem& item,
                                                     const std::shared_ptr<const Device>& reader,
                                                     Need need) {
  constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
  const bool is_small = item.bytes <= kSmallBuffer;
  const std::uint64_t most = is_small ? kSmallBuffer : kAny;
  for (;;) {
    if (auto idle = idle_staging_.take(*reader, item.bytes, most)) return idle;
    const std::uint64_t wanted = buffer_bytes(item, *reader);
    std::size_t count = 0;
    std::uint64_t own = 0;
    bool comes_back = false;  // one that would do, which somebody has
    const auto [begin, end] = staging_made_.equal_range(reader.get());
    for (auto made = begin; made != end; ++made) {
      own += made->second;
      count += (made->second <= kSmallBuffer) == is_small ? 1 : 0;
      comes_back = comes_back || (made->second >= item.bytes && made->second <= most);
    }
    const bool is_enough = count >= kMostBuffers || own + wanted > staging_share();
    const auto fits = [&](std::uint64_t bytes) {
      return staging_bytes_ + bytes <= options_.staging_bytes;
    };
    // As large as is wanted, or else as it has to be.
    const auto make_either = [&]() -> std::unique_ptr<HostBuffer> {
      for (const std::uint64_t bytes : {wanted, item.bytes}) {
        if (!fits(bytes) || (need == Need::ahead && own + bytes > staging_share())) continue;
        auto room = room_->reserve(bytes);
        if (!room) continue;
        auto made = make_staging(lock, item, reader, std::move(*room));
        if (made != nullptr || item.pinning_failed) return made;
      }
      return nullptr;
    };
    if (need == Need::ahead) {
      if (!is_enough)
        if (auto made = make_either(); made != nullptr || item.pinning_failed) return made;
      // One of a model whose weights were smaller keeps out what does for these.
      auto small = idle_staging_.take(*reader, is_small ? 1 : kSmallBuffer + 1, item.bytes - 1);
      if (small == nullptr) return nullptr;
      free_buffer(lock, std::move(small));
      continue;
    }
    // To fill one again takes less time than to make one.
    if (is_enough && unstage_one(lock, reader.get(), item.bytes, most)) continue;
    const bool is_awaited = comes_back && (!pending_.empty() || polling_ > 0 || reading_ > 0);
    if (!is_enough || !is_awaited) {
      if (auto made = make_either(); made != nullptr || item.pinning_failed) return made;
      if (fits(item.bytes)) {
        if (let_go_of_one(lock, {})) continue;
        return nullptr;  // plain memory does as well, only more slowly
      }
    }
    if (is_small)
      if (auto idle = idle_staging_.take(*reader, item.bytes, kAny)) return idle;
    if (unstage_one(lock, reader.get(), item.bytes, kAny)) continue;
    if (!is_awaited && drop_idle_staging(lock)) continue;
    if (poll_passed(lock)) continue;
    if (pending_.empty() && polling_ == 0 && reading_ == 0) return nullptr;
    changed_.wait_for(lock, kBufferPoll);
  }
}

// REQUIRES: room for it has been reserved. nullptr: there is no such memory; when it was no larger
// than the item, none for that.
std::unique_ptr<HostBuffer> HostWeights::make_staging(Lock& lock, HostItem& item,
                                                      const std::shared_ptr<const Device>& reader,
                                                      HostBytes room) {
  const std::uint64_t bytes = room.bytes();
  const auto made = staging_made_.emplace(reader.get(), bytes);
  staging_bytes_ += bytes;
  pinned_bytes_ += bytes;
  lock.unlock();
  std::unique_ptr<HostBuffer> buffer;
  try {
    buffer = std::make_unique<HostBuffer>(std::move(room), reader);
  } catch (const std::exception&) {
  }
  lock.lock();
  if (buffer != nullptr) return buffer;
  item.pinning_failed = bytes == item.bytes;
  staging_made_.erase(made);
  staging_bytes_ -= bytes;
  pinned_bytes_ -= bytes;
  room.give_back();
  changed_.notify_all();
  return nullptr;
}

}  // namespace heddle::core
