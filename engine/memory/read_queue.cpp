#include "engine/memory/read_queue.h"

#include <algorithm>
#include <new>

#include "engine/base/mapped_file.h"

namespace heddle::engine {

namespace {

// A read past the kernel's copies is one piece of work for the disk, however long; behind threads
// that compute, each one that ends costs a turn at the processor.
constexpr std::uint64_t kDirectPieces = 4;

}  // namespace

void ReadQueue::add(HostItem& item, HostCopy& copy, ReadPriority priority) {
  if (priority == ReadPriority::now)
    queue_.emplace_front(&item, &copy);
  else
    queue_.emplace_back(&item, &copy);
  copy.next = 0;
}

void ReadQueue::remove(const HostCopy& copy) {
  std::erase_if(queue_, [&](const auto& entry) { return entry.second == &copy; });
}

std::optional<ReadPiece> ReadQueue::next(const HostItem* only) {
  return take_piece(only == nullptr ? queue_.begin()
                                    : std::ranges::find(queue_, only, &Queue::value_type::first));
}

std::optional<ReadPiece> ReadQueue::next_to_pin() {
  return take_piece(std::ranges::find_if(queue_, [](const auto& entry) {
    return entry.second->is_pinned() && !entry.second->is_direct;
  }));
}

std::optional<ReadPiece> ReadQueue::take_piece(Queue::iterator at) {
  if (at == queue_.end()) return {};
  const auto [item, copy] = *at;
  const std::uint64_t begin = copy->next;
  // Whole pages of the file, so that no page is read twice.
  const std::uint64_t most = piece_bytes_ * (copy->is_direct ? kDirectPieces : 1);
  const std::uint64_t end = begin + most - (item->offset + begin + most) % page_bytes();
  // Not a little that is left over for itself.
  copy->next = end + most / 4 < item->bytes ? end : item->bytes;
  ++copy->reading;
  if (copy->next == item->bytes) queue_.erase(at);
  return ReadPiece{item, copy, begin, copy->next};
}

std::optional<std::pair<HostItem*, HostCopy*>> ReadQueue::abandon_one() {
  const auto found = std::ranges::find_if(queue_, [](const auto& entry) {
    return entry.second->leases == 0 && entry.second->reading == 0 &&
           entry.second->source == nullptr;  // StagedCopies::evict_one() is for those
  });
  if (found == queue_.end()) return {};
  const auto abandoned = *found;
  queue_.erase(found);
  return abandoned;
}

unsigned ReadQueue::begin_reading() {
  unsigned track = 0;
  while (tracks_.contains(track)) ++track;
  try {
    tracks_.insert(track);
  } catch (const std::bad_alloc&) {  // two in one track are only shown less well
  }
  ++reading_;
  return track;
}

void ReadQueue::end_reading(unsigned track) {
  --reading_;
  tracks_.erase(track);
}

}  // namespace heddle::engine
