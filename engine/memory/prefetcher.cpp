#include "engine/memory/prefetcher.h"

#include <algorithm>
#include <new>
#include <set>
#include <system_error>
#include <utility>

#include "engine/memory/staging_sizes.h"

namespace heddle::engine {

Expectation::Expectation(Expectation&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)), parts_(std::move(other.parts_)) {}

Expectation& Expectation::operator=(Expectation&& other) noexcept {
  std::swap(owner_, other.owner_);
  std::swap(parts_, other.parts_);
  return *this;
}

void Expectation::end() {
  if (owner_ == nullptr) return;
  owner_->end(*parts_);
  owner_ = nullptr;
  parts_ = nullptr;
}

// ---- what is expected ----

Expectation Prefetcher::expect(std::span<const FilePart> parts, UseOrder order,
                               std::shared_ptr<const Device> reader, ReadWatch watch,
                               bool is_later) {
  Expectation expectation;
  expectation.parts_ = std::make_shared<ExpectedParts>();
  ExpectedParts& expected = *expectation.parts_;
  expected.order = order;
  expected.is_later = is_later;
  expected.reader = std::move(reader);
  expected.watch = std::move(watch);
  expectation.owner_ = this;             // from here on it is undone when something throws
  expected.items.reserve(parts.size());  // an item that has its use is among them in any case
  const Lock lock(host_.monitor.mutex);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    // It would lie in plain memory, where it keeps out what is pinned instead.
    if (is_later && host_.cache.is_tight(*parts[i].file)) continue;
    HostItem& item = host_.cache.own_item_of(parts[i]);
    expected.items.push_back(&item);
    item.reading_ahead_failed = false;
    // What passes through a device is wanted in the next run, too.
    if (order == UseOrder::cyclic) item.keep_plain = true;
    if (item.uses.empty() || item.uses.back().forecast != &expected)
      item.uses.push_back({&expected, {}});
    item.uses.back().at.push_back(expected.items.size() - 1);
    expected.most = std::max(expected.most, item.bytes);
    if (item.bytes <= kSmallBuffer)
      expected.largest_small = std::max(expected.largest_small, item.bytes);
    else if (item.bytes <= host_.pool.share() / kLargeBuffers)
      expected.largest = std::max(expected.largest, item.bytes);
  }
  host_.cache.add_expected(expected);
  try {
    while (threads_.size() < options_.readers) threads_.emplace_back([this] { run_reader(); });
    while (threads_.size() < options_.readers + options_.copiers)
      threads_.emplace_back([this] { run_copier(); });
  } catch (const std::system_error&) {  // no more threads are to be had: whoever asks reads, too
  } catch (const std::bad_alloc&) {
  }
  host_.monitor.changed.notify_all();
  return expectation;
}

void Prefetcher::end(ExpectedParts& parts) {
  Lock lock(host_.monitor.mutex);
  PageCache& cache = host_.cache;
  cache.remove_expected(parts);
  std::set<PageCache::Key> keys;
  for (HostItem* item : parts.items) {
    std::erase_if(item->uses, [&](const ItemUse& use) { return use.forecast == &parts; });
    try {
      keys.insert(PageCache::key_of(*item));
    } catch (const std::bad_alloc&) {  // it stays until somebody needs the room
    }
  }
  for (const PageCache::Key& key : keys) {  // each step may make the item go
    for (HostItem* item = cache.find(key);
         item != nullptr && host_.staged.evict_unexpected(lock, *item);)
      item = cache.find(key);
    for (const auto which : {&HostItem::pages, &HostItem::buffer})
      if (HostItem* const item = cache.find(key)) cache.drop_if_useless(lock, *item, which);
  }
  while (cache.expected().empty()) {
    if (host_.pool.take_idle_plain({}) == nullptr) break;
  }
  host_.monitor.changed.notify_all();
  host_.monitor.changed.wait(lock, [&] { return parts.watching == 0; });
}

// ---- reading ahead ----

Prefetcher::Next Prefetcher::find_next() const {
  Next next;
  for (const ExpectedParts* parts : host_.cache.expected()) {
    const std::size_t count = parts->items.size(), from = parts->position;
    const std::size_t steps = parts->order == UseOrder::cyclic ? count : count - from;
    const std::uint64_t before = parts->is_later ? kLater : 0;
    if (before >= next.wanted_in) continue;
    std::uint64_t bytes = 0;
    for (std::size_t step = 0; step < std::min<std::uint64_t>(steps, next.wanted_in - before);
         ++step) {
      HostItem* const item = parts->items[(from + step) % count];
      const HostCopy& copy = item->*host_.cache.choose_copy(*item, *parts->reader);
      bytes += item->bytes;
      const bool is_staged = host_.staged.is_staged_ahead(*item, *parts);
      if (is_staged && !item->staged.empty()) continue;          // for whichever device
      if (is_staged && copy.state == CopyState::loading) break;  // another device's; soon there
      const bool is_source = is_staged && copy.state == CopyState::ready;
      if ((copy.state != CopyState::absent && !is_source) || item->reading_ahead_failed) continue;
      next = {item, parts, before + step, bytes - item->bytes};
      break;
    }
  }
  return next;
}

PageCache::Started Prefetcher::start(Lock& lock, HostItem& item, PageCache::Copy which,
                                     const std::shared_ptr<const Device>& reader,
                                     std::uint64_t wanted_in, bool is_assigned_later) {
  const auto started =
      host_.cache.start(lock, item, which, reader, ReadPriority::ahead, is_assigned_later);
  if (started != PageCache::Started::no_room) return started;
  return host_.cache.evict_one(lock, wanted_in) ? PageCache::Started::again : started;
}

Prefetcher::Ahead Prefetcher::read_ahead(Lock& lock) {
  if (host_.leases.has_turns() || host_.cache.do_others_lack_room()) return Ahead::nothing;
  const Next next = find_next();
  if (next.item == nullptr) return Ahead::nothing;
  HostItem& item = *next.item;
  const std::shared_ptr<const Device> reader = next.by->reader;  // they may end meanwhile
  const bool is_later = next.by->is_later;
  // What is expected again goes only for what is wanted very soon. Otherwise everything would be
  // evicted as soon as it was used, to make room for what comes next, and nothing of a cycle that
  // is larger than the room would ever be found here: with the least recently used it is the same.
  const bool is_soon =
      next.wanted_in < 2 ||
      next.bytes_before <= std::min(options_.ahead_bytes, host_.budget.limit() / 8);
  const std::uint64_t wanted_in = is_soon ? next.wanted_in : kUnexpected - 1;
  // Later work may want it pinned. One by one that takes the place of what is read here, as long as
  // there is room for one more.
  if (is_later && !host_.budget.has(item.bytes + next.by->most))
    return host_.cache.evict_one(lock, wanted_in) ? Ahead::begun : Ahead::no_room;
  if (host_.staged.is_staged_ahead(item, *next.by))
    return stage_ahead(lock, item, reader, wanted_in);
  const auto which = host_.cache.choose_copy(item, *reader);
  HostCopy& copy = item.*which;
  ++copy.leases;
  ++beginning_;
  PageCache::Started started = PageCache::Started::again;
  try {
    started = start(lock, item, which, reader, wanted_in);
  } catch (const std::exception&) {
    item.reading_ahead_failed = true;  // whoever asks for it is told
  }
  --beginning_;
  if (started == PageCache::Started::under_way && !copy.is_pinned() && !reader->host_visible() &&
      !is_later)
    item.keep_plain = true;
  if (started == PageCache::Started::no_room) {  // and nothing has changed that anybody waits for
    --copy.leases;
    return Ahead::no_room;
  }
  host_.cache.release(lock, item, which);
  return Ahead::begun;
}

// REQUIRES: the item has no use that goes on without it, and the reader is one that it passes to.
Prefetcher::Ahead Prefetcher::stage_ahead(Lock& lock, HostItem& item,
                                          const std::shared_ptr<const Device>& reader,
                                          std::uint64_t wanted_in) {
  HostCopy& pages = item.pages;
  ++pages.leases;
  ++beginning_;
  Ahead ahead = Ahead::begun;
  std::unique_ptr<HostBuffer> buffer;
  try {
    buffer = host_.staged.take_buffer(lock, item, reader, ReadPriority::ahead);
  } catch (const std::exception&) {
    item.reading_ahead_failed = true;  // whoever asks for it is told
  }
  if (buffer == nullptr && !item.pinning_failed) {
    // Nothing has changed that anybody waits for: told of it, readers would wake each other for
    // ever.
    --beginning_;
    --pages.leases;
    return Ahead::no_buffer;
  }
  if (buffer != nullptr && item.staged.empty() &&
      (pages.state == CopyState::absent || pages.state == CopyState::ready)) {
    try {
      const auto started = start(lock, item, &HostItem::pages, reader, wanted_in, true);
      if (started == PageCache::Started::no_room) ahead = Ahead::no_room;
      if (started == PageCache::Started::under_way) {
        item.keep_plain = true;
        HostCopy& staged =
            host_.staged.stage(lock, item, &HostItem::pages, *reader, std::move(buffer));
        host_.staged.fill(item, staged, ReadPriority::ahead);
      }
    } catch (const std::exception&) {
      host_.staged.fail_unassigned(pages);
      item.reading_ahead_failed = true;
    }
  }
  if (buffer != nullptr) host_.pool.set_idle(lock, std::move(buffer));
  --beginning_;
  host_.cache.release(lock, item, &HostItem::pages);
  return ahead;
}

// ---- threads ----

// False: there is nothing to do now.
bool Prefetcher::read_or_read_ahead(Lock& lock) {
  if (const auto piece = host_.queue.next()) {
    host_.reader.read(lock, *piece);
    return true;
  }
  lock.unlock();
  host_.budget.refresh();
  lock.lock();
  const Ahead ahead = read_ahead(lock);
  if (ahead == Ahead::begun || stopping_ || !host_.queue.empty()) return true;
  const bool lacks_buffer = ahead == Ahead::no_buffer;
  if ((ahead == Ahead::no_room || lacks_buffer) && host_.leases.has_pending()) {
    host_.monitor.changed.wait_for(lock,
                                   lacks_buffer ? HostMonitor::kBufferPoll : HostMonitor::kPoll);
    host_.staged.release_passed(lock);
    return true;
  }
  return false;
}

// What fails here is tried once more by whoever asks for it, and reported there.
void Prefetcher::run_reader() {
  Lock lock(host_.monitor.mutex);
  while (!stopping_) {
    bool is_busy = false;
    try {
      is_busy = read_or_read_ahead(lock);
    } catch (const std::exception&) {
      if (!lock.owns_lock()) lock.lock();
    }
    if (!is_busy && !stopping_) host_.monitor.changed.wait(lock);
  }
}

void Prefetcher::run_copier() {
  Lock lock(host_.monitor.mutex);
  while (!stopping_) {
    if (const auto piece = host_.queue.next_to_pin()) {
      host_.reader.read(lock, *piece);
    } else {
      host_.monitor.filling.wait(lock);
    }
  }
}

void Prefetcher::stop() {
  {
    const Lock lock(host_.monitor.mutex);
    stopping_ = true;
  }
  host_.monitor.changed.notify_all();
  host_.monitor.filling.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace heddle::engine
