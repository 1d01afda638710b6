#include "engine/memory/piece_reader.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "engine/base/caught.h"

namespace heddle::engine {

namespace {

std::uint64_t file_offset(const ReadPiece& piece) { return piece.item->offset + piece.begin; }

// Who is to be told of what is read of the item; nullptr: nobody.
ExpectedParts* watcher_of(const HostItem& item) {
  const auto watched = std::ranges::find_if(
      item.uses, [](const ItemUse& use) { return use.forecast->watch != nullptr; });
  return watched == item.uses.end() ? nullptr : watched->forecast;
}

}  // namespace

PieceReader::Source PieceReader::source_of(const ReadPiece& piece) {
  const HostItem& item = *piece.item;
  const HostCopy& copy = *piece.copy;
  Source source;
  source.is_staged = copy.source != nullptr;
  if (source.is_staged && copy.source == &HostItem::buffer)
    source.from_buffer = item.buffer.memory->data() + item.buffer.lead;
  // What a device that computes in host memory has read already is not read again.
  source.from_pages =
      !source.is_staged && copy.memory != nullptr && item.pages.state == CopyState::ready;
  source.is_counted = source.is_staged ? copy.reads_first : !source.from_pages;
  return source;
}

void PieceReader::read(Lock& lock, const ReadPiece& piece) noexcept {
  HostItem& item = *piece.item;
  const std::uint64_t bytes = piece.end - piece.begin;
  const Source source = source_of(piece);
  if (source.from_pages) ++item.pages.leases;
  ExpectedParts* const parts = watcher_of(item);
  if (parts != nullptr) ++parts->watching;
  const unsigned track = queue_.begin_reading();
  lock.unlock();

  std::optional<Error> failure;
  const auto begin = std::chrono::steady_clock::now();
  try {
    transfer(piece, source);
    if (parts != nullptr && source.is_counted)
      parts->watch({item.name, track, begin, std::chrono::steady_clock::now(), bytes});
  } catch (...) {
    failure = caught_error();
  }

  lock.lock();
  queue_.end_reading(track);
  if (parts != nullptr) --parts->watching;
  if (!failure && source.is_counted) cache_.count_read(item, file_offset(piece), bytes);
  finish(lock, piece, failure);
  if (source.from_pages) cache_.release(lock, item, &HostItem::pages);
  monitor_.changed.notify_all();
}

void PieceReader::transfer(const ReadPiece& piece, const Source& source) {
  const HostCopy& copy = *piece.copy;
  const MappedFile& file = *piece.item->file->mapping;
  const std::uint64_t offset = file_offset(piece), bytes = piece.end - piece.begin;
  if (source.from_buffer != nullptr) {
    std::memcpy(copy.memory->data() + piece.begin, source.from_buffer + piece.begin, bytes);
  } else if (source.from_pages) {
    // From the kernel's copy that the pages are; they need not be in this process's tables.
    file.read(offset, {copy.memory->data() + copy.lead + piece.begin, bytes});
  } else if (source.is_staged) {
    // All of it at once for a disk, whose turn comes while others read, too.
    if (source.is_counted) file.advise(offset, bytes, Advice::will_need);
    file.read(offset, {copy.memory->data() + piece.begin, bytes});
  } else if (copy.memory != nullptr) {
    read_into_buffer(piece);
  } else {
    file.touch(offset, bytes);
  }
}

void PieceReader::read_into_buffer(const ReadPiece& piece) {
  const MappedFile& file = *piece.item->file->mapping;
  const HostCopy& copy = *piece.copy;
  const std::uint64_t offset = file_offset(piece), bytes = piece.end - piece.begin;
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

void PieceReader::finish(Lock& lock, const ReadPiece& piece, const std::optional<Error>& failure) {
  HostItem& item = *piece.item;
  HostCopy& copy = *piece.copy;
  --copy.reading;
  if (failure) {
    if (!copy.failure) copy.failure = failure;
    copy.next = item.bytes;
    queue_.remove(copy);
  }
  if (copy.next < item.bytes || copy.reading > 0) return;
  copy.state = copy.failure ? CopyState::failed : CopyState::ready;
  if (copy.failure) item.reading_ahead_failed = true;
  if (copy.source != nullptr) return staged_.finish_filling(lock, item, copy);
  cache_.drop_if_useless(lock, item, &copy == &item.pages ? &HostItem::pages : &HostItem::buffer);
}

}  // namespace heddle::engine
