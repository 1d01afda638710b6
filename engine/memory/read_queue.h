// What is to be read into host memory, by whoever has time: first what somebody waits for, then
// what is read ahead, each in the order in which it was asked for; in pieces, so that several
// threads read one tensor. Invariant: a copy is in the queue exactly as long as it has bytes that
// nobody has begun to read. Under the lock of host_monitor.h.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "engine/memory/host_item.h"

namespace heddle::engine {

struct ReadPiece {
  HostItem* item = nullptr;
  HostCopy* copy = nullptr;
  std::uint64_t begin = 0, end = 0;  // in the item
};

class ReadQueue {
 public:
  explicit ReadQueue(std::uint64_t piece_bytes) : piece_bytes_(piece_bytes) {}

  // From its first byte. Throws std::bad_alloc, and then nothing has changed.
  void add(HostItem& item, HostCopy& copy, ReadPriority priority);
  void remove(const HostCopy& copy);
  bool empty() const { return queue_.empty(); }

  // The next one of that item, or of any; whoever gets it reads it.
  std::optional<ReadPiece> next(const HostItem* only = nullptr);
  // The next one that goes into pinned memory.
  std::optional<ReadPiece> next_to_pin();
  // Takes one out that was to be read ahead, and that nobody reads just now or waits for.
  std::optional<std::pair<HostItem*, HostCopy*>> abandon_one();

  // Threads that read. `track`: the lowest number that no other has.
  unsigned begin_reading();
  void end_reading(unsigned track);
  unsigned reading() const { return reading_; }

 private:
  using Queue = std::deque<std::pair<HostItem*, HostCopy*>>;
  std::optional<ReadPiece> take_piece(Queue::iterator at);

  const std::uint64_t piece_bytes_;
  Queue queue_;
  std::set<unsigned> tracks_;  // in use
  unsigned reading_ = 0;
};

}  // namespace heddle::engine
