// Memory of one device, cut up and reused without asking the driver. Freed pieces are handed out again at once: that
// is right because everything that uses pool memory is enqueued on the device's one main stream, so whoever gets the
// piece next also runs next. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "engine/base/guarded.h"
#include "engine/device/device.h"

namespace heddle::core {

struct PoolUse {
  std::uint64_t used = 0;      // bytes handed out now
  std::uint64_t peak = 0;      // highest `used` so far
  std::uint64_t reserved = 0;  // bytes taken from the device
};

class Pool {
 public:
  explicit Pool(const Device& device);
  Pool(const Pool&) = delete;
  ~Pool();  // REQUIRES: every piece was given back

  // At least `bytes`, aligned as the device asks. Throws out_of_memory with the figures of this pool.
  std::byte* allocate(std::uint64_t bytes);
  void free(std::byte* piece);

  PoolUse use() const;
  void trim();  // gives chunks without a piece in use back to the device; REQUIRES: the main stream is idle

 private:
  struct Piece {
    std::uint64_t bytes = 0;
    std::size_t chunk = 0;
    bool is_free = false;
  };
  struct Chunk {
    std::byte* memory = nullptr;
    std::uint64_t bytes = 0;
  };
  struct State {
    std::map<std::byte*, Piece> pieces;                             // by address, free and used, without gaps in a chunk
    std::set<std::pair<std::uint64_t, std::byte*>> free_by_size;
    std::map<std::size_t, Chunk> chunks;
    std::size_t next_chunk = 0;
    PoolUse use;
  };
  void release_free_chunks(State& state);

  const Device& device_;
  const std::uint64_t alignment_;
  Guarded<State> state_;
};

}  // namespace heddle::core
