// What host memory holds of one part of a file, and when it will be wanted again: the data of the
// page cache and of those who share its lock (host_monitor.h). Plain data.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/files/tensor_file.h"
#include "engine/memory/host_buffer.h"
#include "engine/memory/range_counts.h"

namespace heddle::engine {

// Bytes of a file: rows of one of its tensors.
struct FilePart {
  std::shared_ptr<const TensorFile> file;
  std::string name;                                   // of the tensor
  std::uint64_t offset = 0, bytes = 0;                // in the file
  std::uint64_t tensor_offset = 0, tensor_bytes = 0;  // of the whole tensor
};

// once: in this order, each as often as it stands there. cyclic: from the start again and again.
enum class UseOrder { once, cyclic };

// Told of a piece that was read, by the thread that read it, with no lock held. `track` tells apart
// those that read at the same time, from 0.
struct FileRead {
  const std::string& name;
  unsigned track = 0;
  std::chrono::steady_clock::time_point begin, end;
  std::uint64_t bytes = 0;
};
using ReadWatch = std::function<void(const FileRead& read)>;

// Of reads: what somebody waits for goes before what is read ahead.
enum class ReadPriority { now, ahead };

struct HostItem;

// Parts in the order in which somebody will ask for them.
struct ExpectedParts {
  UseOrder order = UseOrder::once;
  std::shared_ptr<const Device> reader;
  ReadWatch watch;
  std::vector<HostItem*> items;
  std::size_t position = 0;  // of the one that is wanted next
  // By work that comes behind all that is under way: what that wants is wanted before any of these.
  bool is_later = false;
  std::uint64_t most = 0;  // bytes of the largest
  // Bytes of the largest that a buffer to pass through is made for, and of the largest small one.
  std::uint64_t largest = 0, largest_small = 0;
  unsigned watching = 0;  // reads under way that will tell `watch`
};

inline constexpr std::uint64_t kUnexpected = std::numeric_limits<std::uint64_t>::max();
// Of what is_later: more than work under way wants.
inline constexpr std::uint64_t kLater = std::uint64_t{1} << 40;

struct ItemUse {
  ExpectedParts* forecast = nullptr;
  std::vector<std::size_t> at;  // ascending positions in it

  // How many others are wanted before; kUnexpected: it is not wanted any more.
  std::uint64_t distance() const {
    const std::uint64_t steps = steps_to();
    return steps != kUnexpected && forecast->is_later ? kLater + steps : steps;
  }
  // How many of the forecast come before.
  std::uint64_t steps_to() const {
    const std::size_t from = forecast->position;
    const auto next = std::lower_bound(at.begin(), at.end(), from);
    if (next != at.end()) return *next - from;
    if (forecast->order == UseOrder::once || at.empty()) return kUnexpected;
    return at.front() + forecast->items.size() - from;
  }
};

enum class CopyState { absent, loading, ready, failed };

// A part's bytes in one kind of host memory.
struct HostCopy {
  CopyState state = CopyState::absent;
  unsigned leases = 0;     // that read it, or wait until they can
  std::uint64_t next = 0;  // the first byte that nobody reads from the file yet
  unsigned reading = 0;    // pieces that are being read
  std::optional<Error> failure;
  std::unique_ptr<HostBuffer> memory;  // nullptr: pages of the mapped file
  std::uint64_t lead = 0;              // bytes in `memory` before the first
  bool is_direct = false;              // it is read past the kernel's copies
  // Of pages: they have room and are the kernel's, but in no table of this process yet.
  bool is_unmapped = false;
  bool is_unassigned = false;  // loading, and who is to read it is being decided
  // Of a copy on its way to a device: what it is made of, of which it has a lease while it loads.
  HostCopy HostItem::*source = nullptr;
  bool reads_first = false;  // nothing has read the source before: they are there together

  bool is_held() const { return state == CopyState::loading || state == CopyState::ready; }
  bool is_pinned() const { return memory != nullptr && memory->pinned_by() != nullptr; }
};

struct HostFile {
  RangeCounts held_pages;
  HostBytes budget;        // of these pages
  RangeCounts read_bytes;  // ever
};

struct HostItem {
  std::shared_ptr<const TensorFile> file;
  HostFile* book = nullptr;
  std::string name;
  std::uint64_t offset = 0, bytes = 0;
  // Pages of the mapping, and memory of its own: pinned, or plain where the file is larger than
  // what we may hold.
  HostCopy pages, buffer;
  // In pinned buffers on the way to a device that keeps nothing else here.
  std::map<const Device*, HostCopy> staged;
  std::uint64_t last_use = 0;
  // What is not pinned is given back after its last reader: what was made of it is in host memory,
  // too. Not so what stands in for pinned memory, or of which nothing is made to stay.
  bool keep_plain = false;
  bool pinning_failed = false;
  bool is_unbuffered = false;  // there was no plain memory
  bool reading_ahead_failed = false;
  std::vector<ItemUse> uses;

  std::uint64_t first_page() const { return offset / page_bytes(); }
  std::uint64_t end_page() const { return (offset + bytes + page_bytes() - 1) / page_bytes(); }
  bool is_idle() const {
    return uses.empty() && pages.state == CopyState::absent && buffer.state == CopyState::absent &&
           pages.leases == 0 && buffer.leases == 0 && staged.empty();
  }
  std::uint64_t next_use() const {
    std::uint64_t next = kUnexpected;
    for (const ItemUse& use : uses) next = std::min(next, use.distance());
    return next;
  }
  // By work under way on that device.
  std::uint64_t next_use_by(const Device* reader) const {
    std::uint64_t next = kUnexpected;
    for (const ItemUse& use : uses)
      if (use.forecast->reader.get() == reader && !use.forecast->is_later)
        next = std::min(next, use.distance());
    return next;
  }
};

}  // namespace heddle::engine
