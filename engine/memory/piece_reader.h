// Reads pieces of the queue into host memory: from the file past the kernel's copies or through
// them, into pages of its mapping, or from one copy into another. Whoever has a lease and waits for
// it reads, too. A failure is the copy's, and is reported to those who ask for it. Under the lock
// of host_monitor.h, which is given up while bytes are read.
#pragma once

#include <optional>

#include "engine/base/error.h"
#include "engine/memory/host_monitor.h"
#include "engine/memory/page_cache.h"
#include "engine/memory/read_queue.h"
#include "engine/memory/staged_copies.h"

namespace heddle::engine {

class PieceReader {
 public:
  using Lock = HostMonitor::Lock;
  PieceReader(HostMonitor& monitor, PageCache& cache, StagedCopies& staged, ReadQueue& queue)
      : monitor_(monitor), cache_(cache), staged_(staged), queue_(queue) {}

  void read(Lock& lock, const ReadPiece& piece) noexcept;

 private:
  // Where a piece comes from, as long as it is read.
  struct Source {
    bool is_staged = false;                  // it goes into a staging buffer,
    const std::byte* from_buffer = nullptr;  // out of memory that the item has
    bool from_pages = false;                 // out of what the mapping's pages are
    bool is_counted = false;                 // as read from the file
  };
  static Source source_of(const ReadPiece& piece);
  static void transfer(const ReadPiece& piece, const Source& source);
  static void read_into_buffer(const ReadPiece& piece);
  void finish(Lock& lock, const ReadPiece& piece, const std::optional<Error>& failure);

  HostMonitor& monitor_;
  PageCache& cache_;
  StagedCopies& staged_;
  ReadQueue& queue_;
};

}  // namespace heddle::engine
