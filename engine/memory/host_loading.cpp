// Making room, and reading into it: the part of host_weights.h that takes memory.
#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/caught.h"
#include "engine/base/error.h"
#include "engine/memory/host_weights.h"

namespace heddle::core {

namespace {

// A read past the kernel's copies is one piece of work for the disk, however long; behind threads
// that compute, each one that ends costs a turn at the processor.
constexpr std::uint64_t kDirectPieces = 4;

}  // namespace

// ---- room ----

bool HostWeights::is_to_be_pinned(const HostItem& item, const Device& reader) const {
  if (reader.host_visible() || !reader.has_pinned() || item.pinning_failed) return false;
  // To pin takes longer than to copy once: what is loaded to stay passes through buffers.
  const auto is_once = [](const ItemUse& use) { return use.forecast->order == UseOrder::once; };
  if (!item.uses.empty() && std::ranges::all_of(item.uses, is_once)) return false;
  // A copy of what is here already is worth room that is free, but not another's.
  if (item.pages.state != CopyState::absent && !room_->has(item.bytes)) return false;
  const std::uint64_t most = most_pinned(), copies = pinned_bytes_ - staging_bytes_;
  return item.bytes <= most && copies <= most - item.bytes;
}

HostCopy HostItem::*HostWeights::choose_copy(const HostItem& item, const Device& reader) const {
  if (item.buffer.is_held() || is_to_be_pinned(item, reader)) return &HostItem::buffer;
  if (item.pages.is_held() || item.is_unbuffered || item.bytes == 0) return &HostItem::pages;
  // What is certain to be let go again need not pass through the kernel's copies.
  return is_tight(*item.file) ? &HostItem::buffer : &HostItem::pages;
}

// Lets go of what is wanted last, when others are wanted before it than `wanted_in`; without it, of
// anything that nobody uses.
bool HostWeights::let_go_of_one(Lock& lock, std::optional<std::uint64_t> wanted_in) {
  HostItem* last = nullptr;
  HostCopy HostItem::*which = nullptr;
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
  let_go_of(lock, *last, which);
  return true;
}

// REQUIRES: nobody has a lease on it or reads into it, or will. The item may be gone afterwards.
void HostWeights::let_go_of(Lock& lock, HostItem& item, HostCopy HostItem::*which) {
  HostCopy& copy = item.*which;
  const std::shared_ptr<const TensorFile> file = item.file;
  const std::uint64_t size = item.bytes;
  std::vector<RangeCounts::Range> pages;
  std::unique_ptr<HostBuffer> memory = std::move(copy.memory);
  HostFile& book = *item.book;
  if (which == &HostItem::pages) {
    try {
      pages = book.held_pages.remove(item.first_page(), item.end_page());
    } catch (const std::bad_alloc&) {  // they stay, and stay counted
    }
  } else if (memory->pinned_by() != nullptr) {
    pinned_bytes_ -= memory->bytes();
  }
  if (copy.state == CopyState::ready) counts_.let_go += size;
  if (copy.state == CopyState::loading) counts_.let_go += copy.next;
  // While more is expected, its memory is read into again.
  const bool is_used_again = memory != nullptr && memory->pinned_by() == nullptr &&
                             copy.is_direct && !forecasts_.empty() && !others_lack_room_;
  copy.state = CopyState::absent;
  copy.is_unmapped = false;
  copy.failure.reset();
  drop_if_idle(item);
  if (is_used_again) {
    set_idle(lock, std::move(memory));
    changed_.notify_all();
    return;
  }
  ++leaving_;
  lock.unlock();
  memory.reset();
  for (const RangeCounts::Range& range : pages) {
    file->mapping->advise(range.begin * page_bytes(), (range.end - range.begin) * page_bytes(),
                          Advice::dont_need);
    if (is_tight(*file))
      file->mapping->forget(range.begin * page_bytes(), (range.end - range.begin) * page_bytes());
  }
  lock.lock();
  --leaving_;
  book.room.give_back(RangeCounts::length(pages) * page_bytes());
  changed_.notify_all();
}

// Something that was to be read ahead, and that nobody reads just now or waits for.
bool HostWeights::abandon_one(Lock& lock) {
  const auto found = std::ranges::find_if(loading_, [](const auto& entry) {
    return entry.second->leases == 0 && entry.second->reading == 0 &&
           entry.second->source == nullptr;  // unstage_one() is for those
  });
  if (found == loading_.end()) return false;
  const auto [item, copy] = *found;
  loading_.erase(found);
  let_go_of(lock, *item, copy == &item->pages ? &HostItem::pages : &HostItem::buffer);
  return true;
}

// Something that goes, if it has to, as soon as it is there.
bool HostWeights::is_reading_ahead() const {
  return beginning_ > 0 || std::ranges::any_of(items_, [](const auto& entry) {
           const auto is_ahead = [](const HostCopy& copy) {
             return copy.state == CopyState::loading && copy.leases == 0;
           };
           return is_ahead(entry.second->pages) || is_ahead(entry.second->buffer) ||
                  std::ranges::any_of(entry.second->staged,
                                      [&](const auto& one) { return is_ahead(one.second); });
         });
}

// What the kernel keeps of a file that is larger than what we may hold only pushes out others.
bool HostWeights::is_tight(const TensorFile& file) const {
  return room_->limit() < file.mapping->size();
}

// Waits until something has been given back; what it waits for goes on without this thread.
void HostWeights::await_room(Lock& lock, const HostItem& item, std::uint64_t bytes) {
  if (let_go_of_one(lock, {}) || drop_idle_staging(lock) || unstage_one(lock, nullptr)) return;
  if (poll_passed(lock)) return;
  if (!pending_.empty() || polling_ > 0) {
    // Not by waiting for the event: a stream tells its failure once, and not to the wrong one.
    changed_.wait_for(lock, kPoll);
    return;
  }
  if (const auto piece = next_piece(nullptr)) return read(lock, *piece);
  const bool others_go_on = std::ranges::any_of(
      holders_, [&](std::thread::id holder) { return !stuck_.contains(holder); });
  if (leaving_ > 0 || reading_ > 0 || beginning_ > 0 || others_go_on) return changed_.wait(lock);
  // Devices that compute in host memory have taken it: what they do not use now may go.
  const std::string name = item.name;
  lock.unlock();
  const bool is_made = room_->make(bytes, name);
  lock.lock();
  if (!is_made) throw out_of_memory(name, bytes);
}

// ---- loading ----

// Takes room and lets the copy be read. under_way: it is, or is there, by whomever. again: room was
// made, or there is none of this kind; the caller chooses again. no_room: only when reading ahead.
// `is_assigned_later`: of pages, the caller says at once who reads them. REQUIRES: a lease on the
// copy.
HostWeights::Started HostWeights::start(Lock& lock, HostItem& item, HostCopy HostItem::*which,
                                        const std::shared_ptr<const Device>& reader, Need need,
                                        std::uint64_t wanted_in, bool is_assigned_later) {
  HostCopy& copy = item.*which;
  if (copy.state == CopyState::failed) return Started::again;
  if (copy.state != CopyState::absent) return Started::under_way;
  const bool is_buffer = which == &HostItem::buffer;
  const bool is_pinned = is_buffer && is_to_be_pinned(item, *reader);
  const bool is_direct = is_buffer && is_tight(*item.file);
  const std::uint64_t pages = item.end_page() - item.first_page();
  const std::uint64_t bytes =
      is_direct ? pages * page_bytes()
      : is_buffer
          ? item.bytes
          : item.book->held_pages.missing(item.first_page(), item.end_page()) * page_bytes();
  std::unique_ptr<HostBuffer> used;
  if (is_direct && !is_pinned) used = idle_staging_.take_plain(bytes);
  std::optional<HostBytes> room;
  if (used == nullptr && !(room = room_->reserve(bytes))) {
    if (idle_staging_.take_plain({}) != nullptr) {  // one of another size has gone
    } else if (need == Need::now) {
      await_room(lock, item, bytes);
    } else if (!let_go_of_one(lock, wanted_in)) {
      return Started::no_room;
    }
    return Started::again;
  }
  if (is_buffer) {
    copy.state = CopyState::loading;
    copy.next = item.bytes;
    copy.is_direct = is_direct;
    copy.lead = is_direct ? item.offset % page_bytes() : 0;
    copy.memory = std::move(used);
    if (copy.memory == nullptr &&
        !make_buffer(lock, item, is_pinned ? reader : nullptr, std::move(*room)))
      return Started::again;
  } else {
    item.book->held_pages.add(item.first_page(), item.end_page());
    item.book->room.add(std::move(*room));
    copy.state = CopyState::loading;
    copy.next = item.bytes;
    copy.is_unassigned = is_assigned_later;
    if (is_assigned_later) return Started::under_way;
  }
  if (item.bytes == 0) {
    copy.state = CopyState::ready;
  } else {
    try {
      if (need == Need::now)
        loading_.emplace_front(&item, &copy);
      else
        loading_.emplace_back(&item, &copy);
    } catch (const std::bad_alloc&) {
      let_go_of(lock, item, which);  // the caller's lease keeps the item
      throw;
    }
  }
  copy.next = 0;
  changed_.notify_all();
  if (is_pinned) filling_.notify_all();
  return Started::under_way;
}

// `pinned_by`: nullptr for plain memory. False: there is none, and the room for it is given back.
bool HostWeights::make_buffer(Lock& lock, HostItem& item,
                              const std::shared_ptr<const Device>& pinned_by, HostBytes room) {
  HostCopy& copy = item.buffer;
  const std::uint64_t bytes = room.bytes();
  if (pinned_by != nullptr) pinned_bytes_ += bytes;
  lock.unlock();
  std::unique_ptr<HostBuffer> memory;
  try {
    memory = pinned_by == nullptr ? std::make_unique<HostBuffer>(std::move(room))
                                  : std::make_unique<HostBuffer>(std::move(room), pinned_by);
  } catch (const std::exception&) {  // then something else has to do
  }
  lock.lock();
  copy.memory = std::move(memory);
  if (copy.memory != nullptr) return true;
  (pinned_by == nullptr ? item.is_unbuffered : item.pinning_failed) = true;
  if (pinned_by != nullptr) pinned_bytes_ -= bytes;
  room.give_back();
  copy.state = CopyState::absent;
  changed_.notify_all();
  return false;
}

// Of that item, or of any.
std::optional<HostWeights::Piece> HostWeights::next_piece(const HostItem* only,
                                                          bool is_pinned_only) {
  const auto found = std::ranges::find_if(loading_, [&](const auto& entry) {
    return (only == nullptr || entry.first == only) &&
           (!is_pinned_only || (entry.second->is_pinned() && !entry.second->is_direct));
  });
  if (found == loading_.end()) return {};
  const auto [item, copy] = *found;
  const std::uint64_t begin = copy->next;
  // Whole pages of the file, so that no page is read twice.
  const std::uint64_t most = options_.piece_bytes * (copy->is_direct ? kDirectPieces : 1);
  const std::uint64_t end = begin + most - (item->offset + begin + most) % page_bytes();
  // Not a little that is left over for itself.
  copy->next = end + most / 4 < item->bytes ? end : item->bytes;
  ++copy->reading;
  if (copy->next == item->bytes) loading_.erase(found);
  return Piece{item, copy, begin, copy->next};
}

void HostWeights::read(Lock& lock, const Piece& piece) noexcept {
  HostItem& item = *piece.item;
  HostCopy& copy = *piece.copy;
  const std::uint64_t offset = item.offset + piece.begin, bytes = piece.end - piece.begin;
  // What a device that computes in host memory has read already is not read again.
  const bool is_staged = copy.source != nullptr;
  const bool from_pages =
      !is_staged && copy.memory != nullptr && item.pages.state == CopyState::ready;
  const bool is_counted = is_staged ? copy.reads_first : !from_pages;
  const std::byte* const from_buffer =
      is_staged && copy.source == &HostItem::buffer ? item.buffer.memory->data() + item.buffer.lead
                                                    : nullptr;
  if (from_pages) ++item.pages.leases;
  const auto watched = std::ranges::find_if(
      item.uses, [](const ItemUse& use) { return use.forecast->watch != nullptr; });
  ExpectedParts* const forecast = watched == item.uses.end() ? nullptr : watched->forecast;
  if (forecast != nullptr) ++forecast->watching;
  unsigned lane = 0;
  while (lanes_.contains(lane)) ++lane;
  try {
    lanes_.insert(lane);
  } catch (const std::bad_alloc&) {  // two in one lane are only told less well
  }
  ++reading_;
  lock.unlock();

  std::optional<Error> failure;
  const auto begin = std::chrono::steady_clock::now();
  const MappedFile& file = *item.file->mapping;
  try {
    if (from_buffer != nullptr) {
      std::memcpy(copy.memory->data() + piece.begin, from_buffer + piece.begin, bytes);
    } else if (from_pages) {
      // From the kernel's copy that the pages are; they need not be in this process's tables.
      file.read(offset, {copy.memory->data() + copy.lead + piece.begin, bytes});
    } else if (is_staged) {
      // All of it at once for a disk, whose turn comes while others read, too.
      if (is_counted) file.advise(offset, bytes, Advice::will_need);
      file.read(offset, {copy.memory->data() + piece.begin, bytes});
    } else if (copy.memory != nullptr) {
      read_into_buffer(item, piece);
    } else {
      file.touch(offset, bytes);
    }
    if (forecast != nullptr && is_counted)
      forecast->watch({item.name, lane, begin, std::chrono::steady_clock::now(), bytes});
  } catch (...) {
    failure = caught_error();
  }

  lock.lock();
  --reading_;
  lanes_.erase(lane);
  if (forecast != nullptr) --forecast->watching;
  if (!failure && is_counted) {
    std::uint64_t first = 0;
    try {
      first = RangeCounts::length(item.book->read_bytes.fill(offset, offset + bytes));
    } catch (const std::bad_alloc&) {  // then it counts as read again, now and later
    }
    counts_.read_first += first;
    counts_.read_again += bytes - first;
  }
  finish(lock, piece, failure);
  if (from_pages) give_back_one(lock, {&item, &HostItem::pages});
  changed_.notify_all();
}

void HostWeights::read_into_buffer(const HostItem& item, const Piece& piece) {
  const MappedFile& file = *item.file->mapping;
  const HostCopy& copy = *piece.copy;
  const std::uint64_t offset = item.offset + piece.begin, bytes = piece.end - piece.begin;
  std::byte* const to = copy.memory->data() + copy.lead + piece.begin;
  if (!copy.is_direct) return file.read(offset, {to, bytes});
  // The pages at both ends are the item's alone in its buffer, if not in the file.
  const std::uint64_t page = page_bytes(), before = offset % page;
  const std::uint64_t whole = (before + bytes + page - 1) / page * page;
  if (reinterpret_cast<std::uintptr_t>(to - before) % page == 0 &&
      file.read_direct(offset - before, {to - before, whole}))
    return;
  file.read(offset, {to, bytes});
  file.forget(offset, bytes);
}

void HostWeights::finish(Lock& lock, const Piece& piece, const std::optional<Error>& failure) {
  HostItem& item = *piece.item;
  HostCopy& copy = *piece.copy;
  --copy.reading;
  if (failure) {
    if (!copy.failure) copy.failure = failure;
    copy.next = item.bytes;
    std::erase_if(loading_, [&](const auto& entry) { return entry.second == &copy; });
  }
  if (copy.next < item.bytes || copy.reading > 0) return;
  copy.state = copy.failure ? CopyState::failed : CopyState::ready;
  if (copy.failure) item.reading_ahead_failed = true;
  if (copy.source != nullptr) return finish_filling(lock, item, copy);
  const auto which = &copy == &item.pages ? &HostItem::pages : &HostItem::buffer;
  if (copy.leases == 0 && is_of_no_use(item, copy)) let_go_of(lock, item, which);
}

}  // namespace heddle::core
