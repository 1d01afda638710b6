// Making room, and reading into it: the part of host_weights.h that takes memory.
#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/error.h"
#include "engine/memory/host_weights.h"

namespace heddle::core {

// ---- room ----

HostCopy HostItem::*HostWeights::choose_copy(const HostItem& item, const Device& reader) const {
  const CopyState pinned = item.pinned.state;
  if (pinned == CopyState::loading || pinned == CopyState::ready) return &HostItem::pinned;
  if (reader.host_visible() || !reader.has_pinned() || item.pinning_failed) return &HostItem::pages;
  // A copy of what is here already is worth room that is free, but not another's.
  if (item.pages.state != CopyState::absent && !room_->has(item.bytes)) return &HostItem::pages;
  const std::uint64_t for_copies =
      options_.pinned_bytes - std::min(options_.staging_bytes, options_.pinned_bytes);
  const std::uint64_t copies = pinned_bytes_ - staging_bytes_;
  return item.bytes <= for_copies && copies <= for_copies - item.bytes ? &HostItem::pinned
                                                                       : &HostItem::pages;
}

// Lets go of what is wanted last, when others are wanted before it than `wanted_in`; without it, of
// anything that nobody uses.
bool HostWeights::let_go_of_one(Lock& lock, std::optional<std::uint64_t> wanted_in) {
  HostItem* last = nullptr;
  HostCopy HostItem::*which = nullptr;
  std::uint64_t last_next = 0;
  for (const auto& [key, item] : items_) {
    for (const auto copy : {&HostItem::pages, &HostItem::pinned}) {
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

// REQUIRES: nobody has a lease on it; it is ready or failed. The item may be gone afterwards.
void HostWeights::let_go_of(Lock& lock, HostItem& item, HostCopy HostItem::*which) {
  HostCopy& copy = item.*which;
  const std::shared_ptr<const TensorFile> file = item.file;
  const std::uint64_t size = item.bytes;
  std::vector<RangeCounts::Range> pages;
  std::unique_ptr<PinnedMemory> memory = std::move(copy.memory);
  std::uint64_t bytes = memory == nullptr ? 0 : memory->bytes();
  if (which == &HostItem::pages) {
    pages = item.book->held_pages.remove(item.first_page(), item.end_page());
    bytes = RangeCounts::length(pages) * page_bytes();
  } else {
    pinned_bytes_ -= bytes;
  }
  if (copy.state == CopyState::ready) counts_.let_go += size;
  copy.state = CopyState::absent;
  copy.failure.reset();
  drop_if_idle(item);
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
  room_->release(bytes);
  given_back_ += bytes;
  changed_.notify_all();
}

bool HostWeights::drop_idle_staging(Lock& lock) {
  std::unique_ptr<PinnedMemory> buffer = idle_staging_.drop();
  if (buffer == nullptr) return false;
  const std::uint64_t bytes = buffer->bytes();
  ++leaving_;
  lock.unlock();
  buffer.reset();
  lock.lock();
  --leaving_;
  staging_bytes_ -= bytes;
  pinned_bytes_ -= bytes;
  room_->release(bytes);
  given_back_ += bytes;
  changed_.notify_all();
  return true;
}

// What the kernel keeps of a file that is larger than what we may hold only pushes out others.
bool HostWeights::is_tight(const TensorFile& file) const {
  return room_->limit() < file.mapping->size();
}

// Waits until something has been given back; what it waits for goes on without this thread.
void HostWeights::await_room(Lock& lock, const HostItem& item, std::uint64_t bytes) {
  if (let_go_of_one(lock, {}) || drop_idle_staging(lock)) return;
  if (poll_passed(lock)) return;
  if (!pending_.empty() || polling_ > 0) {
    // Not by waiting for the event: a stream tells its failure once, and not to the wrong one.
    changed_.wait_for(lock, kPoll);
    return;
  }
  if (const auto piece = next_piece(nullptr)) return read(lock, *piece);
  const bool others_go_on = std::ranges::any_of(
      holders_, [&](std::thread::id holder) { return !stuck_.contains(holder); });
  if (leaving_ > 0 || reading_ > 0 || others_go_on) return changed_.wait(lock);
  // Devices that compute in host memory have taken it: what they do not use now may go.
  const std::string name = item.name;
  lock.unlock();
  const bool is_made = room_->make(bytes, name);
  lock.lock();
  if (!is_made) throw out_of_memory(name, bytes);
}

bool HostWeights::poll_passed(Lock& lock) {
  if (pending_.empty()) return false;
  std::deque<Pending> all = std::exchange(pending_, {}), passed, waiting;
  ++polling_;
  lock.unlock();
  for (Pending& one : all) (one.passed->done() ? passed : waiting).push_back(std::move(one));
  lock.lock();
  --polling_;
  pending_.insert(pending_.begin(), std::make_move_iterator(waiting.begin()),
                  std::make_move_iterator(waiting.end()));
  for (Pending& one : passed) give_back(lock, std::move(one.holds));
  changed_.notify_all();
  return !passed.empty();
}

// ---- loading ----

// Takes room and lets the copy be read. under_way: it is, or is there, by whomever. again: room was
// made, or there is none of this kind; the caller chooses again. no_room: only when reading ahead.
// REQUIRES: a lease on the copy.
HostWeights::Started HostWeights::start(Lock& lock, HostItem& item, HostCopy HostItem::*which,
                                        const std::shared_ptr<const Device>& reader, Need need,
                                        std::uint64_t wanted_in) {
  HostCopy& copy = item.*which;
  if (copy.state == CopyState::failed) return Started::again;
  if (copy.state != CopyState::absent) return Started::under_way;
  const std::uint64_t bytes =
      which == &HostItem::pages
          ? item.book->held_pages.missing(item.first_page(), item.end_page()) * page_bytes()
          : item.bytes;
  if (!room_->reserve(bytes)) {
    if (need == Need::now) {
      await_room(lock, item, bytes);
    } else if (!let_go_of_one(lock, wanted_in)) {
      return Started::no_room;
    }
    return Started::again;
  }
  copy.state = CopyState::loading;
  copy.next = item.bytes;
  if (which == &HostItem::pages) {
    item.book->held_pages.add(item.first_page(), item.end_page());
  } else {
    pinned_bytes_ += bytes;
    lock.unlock();
    try {
      copy.memory = std::make_unique<PinnedMemory>(reader, bytes);
    } catch (const Error&) {  // then plain memory has to do
    }
    lock.lock();
    if (copy.memory == nullptr) {
      item.pinning_failed = true;
      pinned_bytes_ -= bytes;
      room_->release(bytes);
      copy.state = CopyState::absent;
      changed_.notify_all();
      return Started::again;
    }
  }
  copy.next = 0;
  if (item.bytes == 0)
    copy.state = CopyState::ready;
  else if (need == Need::now)
    loading_.emplace_front(&item, &copy);
  else
    loading_.emplace_back(&item, &copy);
  changed_.notify_all();
  return Started::under_way;
}

void HostWeights::await_ready(Lock& lock, const Hold& hold) {
  HostCopy& copy = (*hold.item).*hold.copy;
  while (copy.state != CopyState::ready) {
    if (copy.state == CopyState::failed)
      throw Error(*copy.failure);  // one for each: frames are added
    if (const auto piece = next_piece(hold.item)) {
      read(lock, *piece);
    } else {
      changed_.wait(lock);
    }
  }
}

// Of that item, or of any.
std::optional<HostWeights::Piece> HostWeights::next_piece(const HostItem* only) {
  const auto found = std::ranges::find_if(
      loading_, [&](const auto& entry) { return only == nullptr || entry.first == only; });
  if (found == loading_.end()) return {};
  const auto [item, copy] = *found;
  const std::uint64_t begin = copy->next;
  copy->next = std::min(begin + options_.piece_bytes, item->bytes);
  ++copy->reading;
  if (copy->next == item->bytes) loading_.erase(found);
  return Piece{item, copy, begin, copy->next};
}

void HostWeights::read(Lock& lock, const Piece& piece) {
  HostItem& item = *piece.item;
  HostCopy& copy = *piece.copy;
  const std::uint64_t offset = item.offset + piece.begin, bytes = piece.end - piece.begin;
  // What a device that computes in host memory has read already is not read again.
  const bool from_pages = copy.memory != nullptr && item.pages.state == CopyState::ready;
  if (from_pages) ++item.pages.leases;
  const auto watched = std::ranges::find_if(
      item.uses, [](const ItemUse& use) { return use.forecast->watch != nullptr; });
  ExpectedParts* const forecast = watched == item.uses.end() ? nullptr : watched->forecast;
  if (forecast != nullptr) ++forecast->watching;
  unsigned lane = 0;
  while (lanes_.contains(lane)) ++lane;
  lanes_.insert(lane);
  ++reading_;
  lock.unlock();

  std::optional<Error> failure;
  const auto begin = std::chrono::steady_clock::now();
  const MappedFile& file = *item.file->mapping;
  try {
    if (from_pages) {
      std::memcpy(copy.memory->data() + piece.begin, file.bytes().data() + offset, bytes);
    } else if (copy.memory != nullptr) {
      file.read(offset, {copy.memory->data() + piece.begin, bytes});
      if (is_tight(*item.file)) file.forget(offset, bytes);
    } else {
      file.touch(offset, bytes);
    }
    if (forecast != nullptr && !from_pages)
      forecast->watch({item.name, lane, begin, std::chrono::steady_clock::now(), bytes});
  } catch (const Error& error) {
    failure = error;
  } catch (const std::exception& error) {
    failure = Error(Code::internal, error.what());
  }

  lock.lock();
  --reading_;
  lanes_.erase(lane);
  if (forecast != nullptr) --forecast->watching;
  if (!failure && !from_pages) {
    const std::uint64_t first =
        RangeCounts::length(item.book->read_bytes.fill(offset, offset + bytes));
    counts_.read_first += first;
    counts_.read_again += bytes - first;
  }
  finish(lock, piece, failure);
  if (from_pages) give_back_one(lock, {&item, &HostItem::pages});
  changed_.notify_all();
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
  const auto which = &copy == &item.pages ? &HostItem::pages : &HostItem::pinned;
  if (copy.leases == 0 && is_of_no_use(item, copy)) let_go_of(lock, item, which);
}

}  // namespace heddle::core
