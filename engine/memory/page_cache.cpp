#include "engine/memory/page_cache.h"

#include <algorithm>
#include <new>

#include "engine/base/text.h"

namespace heddle::engine {

namespace {

PageCache::Key key_in(const TensorFile& file, std::uint64_t offset, std::uint64_t bytes) {
  return {{file.mapping->identity(), file.mapping->opening()}, offset, bytes};
}

}  // namespace

// ---- items ----

PageCache::Key PageCache::key_of(const HostItem& item) {
  return key_in(*item.file, item.offset, item.bytes);
}

HostItem* PageCache::find(const Key& key) const {
  const auto found = items_.find(key);
  return found == items_.end() ? nullptr : found->second.get();
}

HostItem* PageCache::find(const FilePart& part) const {
  HostItem* const whole = find(key_in(*part.file, part.tensor_offset, part.tensor_bytes));
  if (whole != nullptr && !whole->is_idle()) return whole;
  return find(key_in(*part.file, part.offset, part.bytes));
}

HostItem& PageCache::item_of(const FilePart& part) {
  HostItem* const whole = find(key_in(*part.file, part.tensor_offset, part.tensor_bytes));
  if (whole != nullptr && (whole->pages.is_held() || whole->buffer.is_held())) return *whole;
  return own_item_of(part);
}

HostItem& PageCache::own_item_of(const FilePart& part) {
  const Key key = key_in(*part.file, part.offset, part.bytes);
  if (HostItem* const found = find(key)) return *found;
  auto item = std::make_unique<HostItem>();
  item->file = part.file;
  item->book = &files_[std::get<FileKey>(key)];
  item->name = part.name;
  item->offset = part.offset;
  item->bytes = part.bytes;
  return *items_.emplace(key, std::move(item)).first->second;
}

void PageCache::drop_if_idle(HostItem& item) {
  if (item.is_idle()) items_.erase(key_of(item));
}

void PageCache::advance(const FilePart& part, const Device& reader) {
  const HostItem* const item = find(key_in(*part.file, part.offset, part.bytes));
  if (item == nullptr) return;
  for (const ItemUse& use : item->uses) {
    ExpectedParts& parts = *use.forecast;
    if (parts.reader.get() != &reader) continue;
    const std::uint64_t steps = use.steps_to();
    if (steps == kUnexpected) continue;
    parts.position += steps + 1;
    if (parts.order == UseOrder::cyclic) parts.position %= parts.items.size();
  }
}

// ---- which copy ----

// What the kernel keeps of a file that is larger than what we may hold only pushes out others.
bool PageCache::is_tight(const TensorFile& file) const {
  return budget_.limit() < file.mapping->size();
}

bool PageCache::is_to_be_pinned(const HostItem& item, const Device& reader) const {
  if (reader.host_visible() || !reader.has_pinned() || item.pinning_failed) return false;
  // To pin takes longer than to copy once: what is loaded to stay passes through buffers.
  const auto is_once = [](const ItemUse& use) { return use.forecast->order == UseOrder::once; };
  if (!item.uses.empty() && std::ranges::all_of(item.uses, is_once)) return false;
  // A copy of what is here already is worth room that is free, but not another's.
  if (item.pages.state != CopyState::absent && !budget_.has(item.bytes)) return false;
  return pool_.can_pin_copy(item.bytes);
}

PageCache::Copy PageCache::choose_copy(const HostItem& item, const Device& reader) const {
  if (item.buffer.is_held() || is_to_be_pinned(item, reader)) return &HostItem::buffer;
  if (item.pages.is_held() || item.is_unbuffered || item.bytes == 0) return &HostItem::pages;
  // What is certain to be evicted again need not pass through the kernel's copies.
  return is_tight(*item.file) ? &HostItem::buffer : &HostItem::pages;
}

// ---- loading ----

std::uint64_t PageCache::bytes_to_start(const HostItem& item, Copy which, bool is_direct) const {
  if (which == &HostItem::pages)
    return item.book->held_pages.missing(item.first_page(), item.end_page()) * page_bytes();
  return is_direct ? (item.end_page() - item.first_page()) * page_bytes() : item.bytes;
}

PageCache::Started PageCache::start(Lock& lock, HostItem& item, Copy which,
                                    const std::shared_ptr<const Device>& reader,
                                    ReadPriority priority, bool is_assigned_later) {
  HostCopy& copy = item.*which;
  if (copy.state == CopyState::failed) return Started::again;
  if (copy.state != CopyState::absent) return Started::under_way;
  const bool is_buffer = which == &HostItem::buffer;
  const bool is_pinned = is_buffer && is_to_be_pinned(item, *reader);
  const bool is_direct = is_buffer && is_tight(*item.file);  // once: the limit may change
  const std::uint64_t bytes = bytes_to_start(item, which, is_direct);
  std::unique_ptr<HostBuffer> used;
  if (is_direct && !is_pinned) used = pool_.take_idle_plain(bytes);
  std::optional<HostBytes> budget;
  if (used == nullptr && !(budget = budget_.reserve(bytes))) {
    const bool has_freed = pool_.take_idle_plain({}) != nullptr;  // one of another size
    return has_freed ? Started::again : Started::no_room;
  }
  if (is_buffer) {
    copy.state = CopyState::loading;
    copy.next = item.bytes;
    copy.is_direct = is_direct;
    copy.lead = is_direct ? item.offset % page_bytes() : 0;
    copy.memory = std::move(used);
    if (copy.memory == nullptr &&
        !make_memory(lock, item, is_pinned ? reader : nullptr, std::move(*budget)))
      return Started::again;
  } else {
    item.book->held_pages.add(item.first_page(), item.end_page());
    item.book->budget.add(std::move(*budget));
    copy.state = CopyState::loading;
    copy.next = item.bytes;
    copy.is_unassigned = is_assigned_later;
    if (is_assigned_later) return Started::under_way;
  }
  if (item.bytes == 0) {
    copy.state = CopyState::ready;
    copy.next = 0;
  } else {
    try {
      queue_.add(item, copy, priority);
    } catch (const std::bad_alloc&) {
      evict(lock, item, which);  // the caller's lease keeps the item
      throw;
    }
  }
  monitor_.changed.notify_all();
  if (is_pinned) monitor_.filling.notify_all();
  return Started::under_way;
}

// For the item's buffer. `pinned_by`: nullptr for plain memory. False: there is none.
bool PageCache::make_memory(Lock& lock, HostItem& item,
                            const std::shared_ptr<const Device>& pinned_by, HostBytes budget) {
  HostCopy& copy = item.buffer;
  copy.memory = pool_.make_copy(lock, pinned_by, std::move(budget));
  if (copy.memory != nullptr) return true;
  (pinned_by == nullptr ? item.is_unbuffered : item.pinning_failed) = true;
  copy.state = CopyState::absent;
  monitor_.changed.notify_all();
  return false;
}

void PageCache::count_read(const HostItem& item, std::uint64_t offset, std::uint64_t bytes) {
  std::uint64_t first = 0;
  try {
    first = RangeCounts::length(item.book->read_bytes.fill(offset, offset + bytes));
  } catch (const std::bad_alloc&) {  // then it counts as read again, now and later
  }
  counts_.read_first += first;
  counts_.read_again += bytes - first;
}

// ---- giving back ----

bool PageCache::is_of_no_use(const HostItem& item, const HostCopy& copy) const {
  if (copy.state == CopyState::failed) return true;
  if (copy.state != CopyState::ready || copy.is_pinned()) return false;
  const bool has_another = &copy == &item.pages && item.buffer.state == CopyState::ready;
  return has_another || (!item.keep_plain && item.next_use() == kUnexpected);
}

void PageCache::release(Lock& lock, HostItem& item, Copy which) {
  --(item.*which).leases;
  monitor_.changed.notify_all();
  drop_if_useless(lock, item, which);
}

void PageCache::drop_if_useless(Lock& lock, HostItem& item, Copy which) {
  const HostCopy& copy = item.*which;
  if (copy.leases == 0 && is_of_no_use(item, copy)) return evict(lock, item, which);
  drop_if_idle(item);
}

bool PageCache::evict_one(Lock& lock, std::optional<std::uint64_t> wanted_in) {
  HostItem* last = nullptr;
  Copy which = nullptr;
  std::uint64_t last_next = 0;
  for (const auto& [key, item] : items_) {
    for (const auto copy : {&HostItem::pages, &HostItem::buffer}) {
      const HostCopy& c = (*item).*copy;
      if (c.state != CopyState::ready || c.leases > 0) continue;
      const std::uint64_t next = item->next_use();
      if (wanted_in && next <= *wanted_in) continue;
      if (last != nullptr &&
          (next < last_next || (next == last_next && item->last_use >= last->last_use)))
        continue;
      last = item.get();
      which = copy;
      last_next = next;
    }
  }
  if (last == nullptr) return false;
  evict(lock, *last, which);
  return true;
}

namespace {

bool is_pinned_by(const HostItem& item, const Device& device) {
  return item.buffer.memory != nullptr && item.buffer.memory->pinned_by() == &device;
}

}  // namespace

bool PageCache::evict_pinned_by(Lock& lock, const Device& device) {
  const auto found = std::ranges::find_if(items_, [&](const auto& entry) {
    const HostCopy& copy = entry.second->buffer;
    return is_pinned_by(*entry.second, device) && copy.state == CopyState::ready &&
           copy.leases == 0;
  });
  if (found == items_.end()) return false;
  evict(lock, *found->second, &HostItem::buffer);
  return true;
}

bool PageCache::has_pinned_by(const Device& device) const {
  return std::ranges::any_of(
      items_, [&](const auto& entry) { return is_pinned_by(*entry.second, device); });
}

void PageCache::evict(Lock& lock, HostItem& item, Copy which) {
  HostCopy& copy = item.*which;
  const std::shared_ptr<const TensorFile> file = item.file;
  HostFile& book = *item.book;
  std::vector<RangeCounts::Range> pages;
  std::unique_ptr<HostBuffer> memory = std::move(copy.memory);
  if (which == &HostItem::pages) {
    try {
      pages = book.held_pages.remove(item.first_page(), item.end_page());
    } catch (const std::bad_alloc&) {  // they stay, and stay counted
    }
  } else {
    pool_.forget_copy(*memory);
  }
  if (copy.state == CopyState::ready) counts_.evicted += item.bytes;
  if (copy.state == CopyState::loading) counts_.evicted += copy.next;
  // While more is expected, its memory is read into again.
  const bool is_used_again = memory != nullptr && memory->pinned_by() == nullptr &&
                             copy.is_direct && !expected_.empty() && !others_lack_room_;
  copy.state = CopyState::absent;
  copy.is_unmapped = false;
  copy.failure.reset();
  drop_if_idle(item);
  if (is_used_again) {
    pool_.set_idle(lock, std::move(memory));
    monitor_.changed.notify_all();
    return;
  }
  {
    const HostMonitor::Freeing freeing(monitor_, lock);
    memory.reset();
    for (const RangeCounts::Range& range : pages) {
      const std::uint64_t offset = range.begin * page_bytes();
      const std::uint64_t bytes = (range.end - range.begin) * page_bytes();
      file->mapping->advise(offset, bytes, Advice::dont_need);
      if (is_tight(*file)) file->mapping->forget(offset, bytes);
    }
  }
  book.budget.give_back(RangeCounts::length(pages) * page_bytes());
  monitor_.changed.notify_all();
}

bool PageCache::abandon_one(Lock& lock) {
  const auto abandoned = queue_.abandon_one();
  if (!abandoned) return false;
  const auto [item, copy] = *abandoned;
  evict(lock, *item, copy == &item->pages ? &HostItem::pages : &HostItem::buffer);
  return true;
}

bool PageCache::is_loading_ahead() const {
  return std::ranges::any_of(items_, [](const auto& entry) {
    const auto is_ahead = [](const HostCopy& copy) {
      return copy.state == CopyState::loading && copy.leases == 0;
    };
    return is_ahead(entry.second->pages) || is_ahead(entry.second->buffer) ||
           std::ranges::any_of(entry.second->staged,
                               [&](const auto& one) { return is_ahead(one.second); });
  });
}

Error PageCache::out_of_memory(const std::string& name, std::uint64_t bytes) const {
  std::uint64_t in_use = 0;
  for (const auto& [key, item] : items_)
    for (const HostCopy* copy : {&item->pages, &item->buffer})
      if (copy->leases > 0 && copy->state != CopyState::absent) in_use += item->bytes;
  return Error(Code::out_of_memory,
               cat("out of host memory: wanted ", format_bytes(bytes), " for the weights ",
                   quote(name), "; the limit is ", format_bytes(budget_.limit()), ", held are ",
                   format_bytes(budget_.held()), ", of which ", format_bytes(in_use),
                   " are in use. Raise the host budget."));
}

}  // namespace heddle::engine
