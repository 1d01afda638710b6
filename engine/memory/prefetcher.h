// What will be asked for next, and reading it before anybody asks, so that the disk works while
// devices copy and compute. Its threads read what is queued, too. Who asks now goes before it, and
// so does a device that lacks room. Public functions are called without the lock of host_monitor.h
// unless they take it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "engine/memory/host_monitor.h"
#include "engine/memory/lease_book.h"
#include "engine/memory/page_cache.h"
#include "engine/memory/piece_reader.h"
#include "engine/memory/staged_copies.h"
#include "engine/memory/staging_pool.h"

namespace heddle::engine {

class Prefetcher;

// As long as it lives, its parts are expected. One thread at a time.
class Expectation {
 public:
  Expectation() = default;
  Expectation(Expectation&& other) noexcept;
  Expectation& operator=(Expectation&& other) noexcept;
  ~Expectation() { end(); }
  void end();  // waits for reads whose watch it brought

 private:
  friend class Prefetcher;
  Prefetcher* owner_ = nullptr;
  std::shared_ptr<ExpectedParts> parts_;
};

class Prefetcher {
 public:
  using Lock = HostMonitor::Lock;
  struct Options {
    unsigned readers = 0;           // threads that read ahead; 0: nothing is
    unsigned copiers = 0;           // others, that only help to fill pinned memory
    std::uint64_t ahead_bytes = 0;  // so far ahead others that are expected go for it
  };
  // What it works with; all of it outlives it.
  struct Parts {
    HostMonitor& monitor;
    HostBudget& budget;
    LeaseBook& leases;
    StagingPool& pool;
    ReadQueue& queue;
    PageCache& cache;
    StagedCopies& staged;
    PieceReader& reader;
  };
  Prefetcher(const Parts& host, Options options) : host_(host), options_(options) {}
  ~Prefetcher() { stop(); }
  void stop();  // its threads end

  Expectation expect(std::span<const FilePart> parts, UseOrder order,
                     std::shared_ptr<const Device> reader, ReadWatch watch, bool is_later);
  // Under the lock: something goes, if it has to, as soon as it is there.
  bool is_reading_ahead() const { return beginning_ > 0 || host_.cache.is_loading_ahead(); }
  // Under the lock: a thread takes room to read ahead.
  bool is_beginning() const { return beginning_ > 0; }

 private:
  friend class Expectation;
  enum class Ahead { begun, no_room, no_buffer, nothing };
  // What is wanted next that is not here.
  struct Next {
    HostItem* item = nullptr;
    const ExpectedParts* by = nullptr;
    std::uint64_t wanted_in = kUnexpected;  // so many others are wanted before
    std::uint64_t bytes_before = 0;         // of these
  };
  void end(ExpectedParts& parts);
  Next find_next() const;
  PageCache::Started start(Lock& lock, HostItem& item, PageCache::Copy which,
                           const std::shared_ptr<const Device>& reader, std::uint64_t wanted_in,
                           bool is_assigned_later = false);
  Ahead read_ahead(Lock& lock);
  Ahead stage_ahead(Lock& lock, HostItem& item, const std::shared_ptr<const Device>& reader,
                    std::uint64_t wanted_in);
  bool read_or_read_ahead(Lock& lock);
  void run_reader();
  void run_copier();

  const Parts host_;
  const Options options_;
  unsigned beginning_ = 0;  // threads that take room to read ahead
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace heddle::engine
