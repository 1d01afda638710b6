// The bytes of weights in host memory, for all devices of an engine: one copy, whatever the number
// of devices, read from the file once and kept as long as there is room. For devices that compute
// in host memory it is the file's mapping; for others pinned memory, as far as that goes, and
// beyond it the mapping again, from where bytes pass through a few pinned buffers on their way: read
// into them from the file by several threads, which leaves the mapping's tables as they are. Of
// a file that is larger than all that may be held, it is plain memory instead of the mapping: what
// is let go soon is read past the kernel's copies, which takes less time and pushes out nothing.
//
// Everything held is within a hard limit (host_room.h): pages of mappings from the moment they are
// read until they are given back, pinned copies, and the buffers. When room is short, what will be
// wanted last, as far as anybody said, is let go first, and of what nobody expects the least
// recently used. What is expected next is read ahead by threads of its own, so that the disk works
// while devices copy and compute.
//
// Thread-safe. Lock order: none is taken below this one's but that of the room; devices, files and
// watches are called without it. Outlives every lease and expectation, and is outlived by none of
// the devices' plugins (it holds the devices that it has pinned memory of).
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <tuple>
#include <vector>

#include "engine/files/checkpoint.h"
#include "engine/memory/host_item.h"
#include "engine/memory/host_room.h"

namespace heddle::core {

class HostWeights;

// The part of a file that rows of a tensor are; all of a tensor without rows.
FilePart file_part(const TensorView& tensor, std::int64_t begin, std::int64_t end);

// Bytes that stay where they are as long as this lives, or until the event that it was told of has
// passed. One thread at a time.
class HostLease {
 public:
  HostLease(const HostLease&) = delete;
  ~HostLease();

  // In the order of the parts that were asked for.
  const std::byte* data(std::size_t part) const { return data_[part]; }
  // That the bytes are pages of, or came from.
  const std::shared_ptr<const TensorFile>& file(std::size_t part) const {
    return holds_[part].item->file;
  }
  // The bytes are read by nobody once `passed`, which has been recorded, is behind its stream: they
  // may go then, whether this lives on or not.
  void end_with(Event passed);
  // No event will tell: it ends with this, and nobody is to wait for the thread that took it.
  void leave() noexcept;

 private:
  friend class HostWeights;
  struct Hold {
    HostItem* item = nullptr;
    HostCopy HostItem::*copy = nullptr;
    HostCopy* staged = nullptr;  // the item's, for the reader
  };
  explicit HostLease(std::shared_ptr<const Device> reader) : reader_(std::move(reader)) {}

  const std::shared_ptr<const Device> reader_;
  HostWeights* owner_ = nullptr;  // nullptr: nothing is to be given back
  std::vector<Hold> holds_;
  std::vector<const std::byte*> data_;
  std::thread::id thread_;  // that holds it before any event is known
};

// As long as it lives, its parts are expected. One thread at a time.
class Expectation {
 public:
  Expectation() = default;
  Expectation(Expectation&& other) noexcept;
  Expectation& operator=(Expectation&& other) noexcept;
  ~Expectation() { end(); }
  void end();  // waits for reads whose watch it brought

 private:
  friend class HostWeights;
  HostWeights* owner_ = nullptr;
  std::shared_ptr<ExpectedParts> forecast_;
};

struct HostReport {
  std::uint64_t limit = 0;  // HostRoom::kUnlimited: none
  std::uint64_t held = 0, peak = 0;
  std::uint64_t pinned = 0;      // of what is held, staging included
  std::uint64_t read_first = 0;  // bytes that came from files for the first time
  std::uint64_t read_again = 0;
  std::uint64_t let_go = 0;  // bytes of parts, as often as they were
};

class HostWeights {
 public:
  struct Options {
    std::uint64_t pinned_bytes = 0;   // at most, staging included; 0: plain memory only
    std::uint64_t staging_bytes = 0;  // of them, for bytes that pass through
    unsigned staging_devices = 1;     // that share them
    unsigned readers = 2;             // threads that read ahead; 0: nothing is
    unsigned copiers = 0;             // others, that only help to fill pinned memory
    std::uint64_t piece_bytes = std::uint64_t{4} << 20;
    // So far ahead of their use things are read for which others that are expected have to go.
    std::uint64_t ahead_bytes = std::uint64_t{64} << 20;
  };
  HostWeights(std::shared_ptr<HostRoom> room, Options options);
  ~HostWeights();  // REQUIRES: no lease and no expectation is left
  HostWeights(const HostWeights&) = delete;

  // All of the parts, together, for work on `reader`; waits until they are there, and where room is
  // short until others have let go of theirs. Throws out_of_memory, with the figures, when there
  // cannot be room; io with file and offset.
  std::shared_ptr<HostLease> get(std::span<const FilePart> parts,
                                 const std::shared_ptr<const Device>& reader);
  // From now on they are wanted in this order, by get() for that reader; it may leave some out.
  [[nodiscard]] Expectation expect(std::span<const FilePart> parts, UseOrder order,
                                   std::shared_ptr<const Device> reader, ReadWatch watch = {});

  // Lets go of at least so many bytes where it can: what is wanted last first. Waits for streams
  // that still copy from it, not for leases that have no event. Nothing is read ahead into what
  // went before the next get(). The bytes let go.
  std::uint64_t let_go(std::uint64_t bytes);
  // Gives back what leases hold whose event has passed. Done by get(), too.
  void reclaim();
  HostReport report() const;
  // Bytes that pinned copies of parts may take together; buffers that others pass through have the
  // rest of what may be pinned.
  std::uint64_t most_pinned() const {
    return std::min(room_->limit(),
                    options_.pinned_bytes - std::min(options_.staging_bytes, options_.pinned_bytes));
  }

 private:
  friend class HostLease;
  friend class Expectation;
  using FileKey = std::pair<FileIdentity, std::uint64_t>;  // and its opening
  using Key = std::tuple<FileKey, std::uint64_t, std::uint64_t>;  // file, offset, bytes
  using Lock = std::unique_lock<std::mutex>;
  using Hold = HostLease::Hold;
  struct Pending {
    std::shared_ptr<const Device> device;  // outlives its event
    std::shared_ptr<const Event> passed;
    std::vector<Hold> holds;
  };
  struct Piece {
    HostItem* item = nullptr;
    HostCopy* copy = nullptr;
    std::uint64_t begin = 0, end = 0;  // in the item
  };
  // While it lives, nobody else takes room.
  class Turn {
   public:
    Turn(HostWeights& owner, Lock& lock);
    ~Turn();
    Turn(const Turn&) = delete;

   private:
    HostWeights& owner_;
    const std::multiset<std::thread::id>::iterator self_;
    const std::uint64_t ticket_;  // the last: nothing fails once the others wait for it
  };
  enum class Need { now, ahead };
  enum class Started { under_way, again, no_room };
  enum class Ahead { begun, no_room, no_buffer, nothing };
  static constexpr std::chrono::microseconds kPoll{500};  // of events, by those who lack room
  // By those who lack a buffer, which is full again in a few of these.
  static constexpr std::chrono::microseconds kBufferPoll{50};
  using Staged = std::map<const Device*, HostCopy>::iterator;

  // host_weights.cpp: asking and giving back.
  static FileKey key_of(const TensorFile& file) {
    return {file.mapping->identity(), file.mapping->opening()};
  }
  HostItem* find(const FilePart& part, std::uint64_t offset, std::uint64_t bytes);
  HostItem& item_of(const FilePart& part);
  HostItem& own_item_of(const FilePart& part);
  void drop_if_idle(HostItem& item);
  void advance(const FilePart& part, const Device& reader);
  bool is_here(const FilePart& part, const Device& reader);
  void check_fits(std::span<const FilePart> parts) const;
  Error out_of_memory(const std::string& name, std::uint64_t bytes) const;
  Hold take_copy(Lock& lock, const FilePart& part, const std::shared_ptr<const Device>& reader,
                 std::span<const Hold> taken);
  void await_ready(Lock& lock, const Hold& hold, const std::shared_ptr<const Device>& reader);
  bool poll_passed(Lock& lock);
  void give_back(Lock& lock, std::vector<Hold> holds);
  void give_back_one(Lock& lock, Hold hold);
  bool is_of_no_use(const HostItem& item, const HostCopy& copy) const;

  // host_expectation.cpp: what comes next.
  void end(ExpectedParts& forecast);
  Ahead read_ahead(Lock& lock);
  bool read_or_read_ahead(Lock& lock);
  void run_reader();
  void run_copier();

  // host_staging.cpp: pinned buffers on the way to a device.
  bool passes_through(const HostItem& item, const Device& reader) const;
  bool is_staged_ahead(const HostItem& item, const ExpectedParts& forecast) const;
  void take_staging(Lock& lock, Hold& hold, const std::shared_ptr<const Device>& reader);
  void find_staging(Lock& lock, Hold& hold, const std::shared_ptr<const Device>& reader);
  void fail_unassigned(HostCopy& source);  // with the exception under way
  Ahead stage_ahead(Lock& lock, HostItem& item, const std::shared_ptr<const Device>& reader,
                    std::uint64_t wanted_in);
  HostCopy& stage(Lock& lock, HostItem& item, HostCopy HostItem::*source, const Device& reader,
                  std::unique_ptr<HostBuffer> buffer);
  void fill(HostItem& item, HostCopy& staged, Need need);
  void finish_filling(Lock& lock, HostItem& item, HostCopy& staged);
  void unstage(Lock& lock, HostItem& item, Staged staged);
  bool unstage_one(Lock& lock, const Device* reader, std::uint64_t least = 0,
                   std::uint64_t most = std::numeric_limits<std::uint64_t>::max());
  bool drop_idle_staging(Lock& lock);
  void free_buffer(Lock& lock, std::unique_ptr<HostBuffer> buffer);
  void set_idle(Lock& lock, std::unique_ptr<HostBuffer> buffer);  // to be used again
  std::uint64_t staging_share() const {
    return options_.staging_bytes / std::max(1u, options_.staging_devices);
  }
  std::uint64_t buffer_bytes(const HostItem& item, const Device& reader) const;
  std::unique_ptr<HostBuffer> take_buffer(Lock& lock, HostItem& item,
                                          const std::shared_ptr<const Device>& reader, Need need);
  std::unique_ptr<HostBuffer> make_staging(Lock& lock, HostItem& item,
                                           const std::shared_ptr<const Device>& reader,
                                           HostBytes room);

  // host_loading.cpp: room and reading. Functions that take the lock may give it up meanwhile.
  bool is_to_be_pinned(const HostItem& item, const Device& reader) const;
  HostCopy HostItem::*choose_copy(const HostItem& item, const Device& reader) const;
  bool let_go_of_one(Lock& lock, std::optional<std::uint64_t> wanted_in);
  void let_go_of(Lock& lock, HostItem& item, HostCopy HostItem::*which);
  bool abandon_one(Lock& lock);
  bool is_reading_ahead() const;
  bool is_tight(const TensorFile& file) const;
  void await_room(Lock& lock, const HostItem& item, std::uint64_t bytes);
  Started start(Lock& lock, HostItem& item, HostCopy HostItem::*which,
                const std::shared_ptr<const Device>& reader, Need need, std::uint64_t wanted_in,
                bool is_assigned_later = false);
  bool make_buffer(Lock& lock, HostItem& item, const std::shared_ptr<const Device>& pinned_by,
                   HostBytes room);
  std::optional<Piece> next_piece(const HostItem* only, bool is_pinned_only = false);
  void read(Lock& lock, const Piece& piece) noexcept;  // a failure is the copy's
  static void read_into_buffer(const HostItem& item, const Piece& piece);
  void finish(Lock& lock, const Piece& piece, const std::optional<Error>& failure);

  const std::shared_ptr<HostRoom> room_;
  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable filling_;  // bytes for pinned memory are to be read
  // All below: mutex_.
  std::map<FileKey, HostFile> files_;
  std::map<Key, std::unique_ptr<HostItem>> items_;
  std::vector<ExpectedParts*> forecasts_;
  std::list<Pending> pending_;  // moved about without taking memory
  // Threads that look at what was pending, that give memory back, that read.
  unsigned polling_ = 0, leaving_ = 0, reading_ = 0;
  unsigned beginning_ = 0;  // threads that take room to read ahead
  StagingBuffers idle_staging_;
  std::multimap<const Device*, std::uint64_t> staging_made_;  // bytes of those there are
  std::uint64_t staging_bytes_ = 0, pinned_bytes_ = 0;  // that exist; the second includes the first
  std::deque<std::pair<HostItem*, HostCopy*>> loading_;  // with bytes that nobody reads yet
  std::set<unsigned> lanes_;                             // in use
  std::uint64_t clock_ = 0;
  std::uint64_t next_ticket_ = 0, served_ticket_ = 0;
  std::multiset<std::thread::id> holders_;  // of leases whose end is not known
  std::multiset<std::thread::id> stuck_;    // have a turn, or wait for it
  HostReport counts_;
  bool stopping_ = false;
  bool others_lack_room_ = false;
  std::vector<std::thread> readers_;
};

}  // namespace heddle::core
