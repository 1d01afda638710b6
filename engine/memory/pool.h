// Memory of one device, cut up and reused without asking the driver. Freed pieces are handed out
// again at once: that is right because everything that uses pool memory is enqueued on the device's
// one main stream, so whoever gets the piece next also runs next. What it takes from the device it
// takes under the device's ledger. Thread-safe.
//
// A large piece has a chunk of exactly its size, so that large pieces never break each other's room
// up: there is room for one whenever the ledger has it. Small pieces share chunks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "engine/base/guarded.h"
#include "engine/device/device.h"
#include "engine/memory/ledger.h"

namespace heddle::engine {

struct PoolUse {
  std::uint64_t used = 0;      // bytes handed out now
  std::uint64_t peak = 0;      // highest `used` so far
  std::uint64_t reserved = 0;  // bytes taken from the device
  // Of these, free beside small pieces in use: only small pieces can have them, and they cannot go
  // back.
  std::uint64_t beside_small = 0;
  // Of those, what goes back with weights that are evicted: nothing else is in use in their chunks.
  std::uint64_t beside_weights = 0;
};

// What a piece is for, and on whose claim.
struct PieceUse {
  MemoryTag tag{};
  std::string_view what = {};   // for the error: "weights of single.17"
  Reservation* from = nullptr;  // of this device's ledger; nullptr: none
  std::uint64_t workspace = 0;  // bytes of it that kernels work in: they are listed by themselves
};

class Pool {
 public:
  // Small pieces share chunks of this size, or of a 64th of the budget where that is less.
  static constexpr std::uint64_t kMostShared = 8ull << 20;
  static constexpr std::uint64_t kChunksInBudget = 64;

  // Both outlive it.
  Pool(const Device& device, Ledger& ledger);
  Pool(const Pool&) = delete;
  ~Pool();  // REQUIRES: every piece was given back

  // At least `bytes`, aligned as the device asks. Throws out_of_memory with the ledger.
  std::byte* allocate(std::uint64_t bytes, const PieceUse& use = {});
  void free(std::byte* piece);
  // What a piece of so many bytes takes.
  std::uint64_t rounded(std::uint64_t bytes) const;

  PoolUse use() const;
  // Gives chunks without a piece in use back to the device. REQUIRES: the main stream is past what
  // used them: idle, or past the moment at which now() gave `until`.
  void trim(std::uint64_t until = ~std::uint64_t{0});
  std::uint64_t now() const {
    return state_.lock()->frees;
  }  // counts the chunks that have become free
  bool has_free_chunks() const;

 private:
  struct Piece {
    std::uint64_t bytes = 0;
    std::size_t chunk = 0;
    bool is_free = false;
    TaggedBytes tagged{}, workspace{};  // while it is in use
  };
  struct Free {
    const Device* device;
    void operator()(std::byte* memory) const { device->free(memory); }
  };
  struct Chunk {
    TakenBytes taken;  // goes back after the memory
    std::unique_ptr<std::byte, Free> memory;
    bool is_shared = false;
    std::uint64_t free_since = 0;  // of State::frees, when the last piece went
    std::uint64_t bytes() const { return taken.bytes(); }
  };
  using BySize = std::set<std::pair<std::uint64_t, std::byte*>>;
  struct State {
    std::map<std::byte*, Piece> pieces;  // by address, free and used, without gaps in a chunk
    BySize free_parts;                   // of shared chunks
    BySize free_chunks;                  // of one piece each
    std::map<std::size_t, Chunk> chunks;
    std::size_t next_chunk = 0;
    std::uint64_t frees = 0;
    PoolUse use;
  };
  std::byte* take_free(State& state, std::uint64_t bytes, const PieceUse& use);
  std::byte* hand_out(State& state, BySize::iterator from, BySize& of, std::uint64_t bytes,
                      const PieceUse& use);
  static bool has_weights_only(const State& state, const Chunk& chunk);
  bool is_small(std::uint64_t bytes) const { return bytes <= shared_bytes_ / 4; }
  Chunk make_chunk(std::uint64_t bytes, const PieceUse& use);
  Chunk fill_chunk(TakenBytes taken, bool is_shared, const PieceUse& use);
  std::byte* allocate_chunk(std::uint64_t bytes, const PieceUse& use);
  void release(State& state, std::map<std::size_t, Chunk>::iterator chunk);

  const Device& device_;
  Ledger& ledger_;
  const std::uint64_t alignment_;
  const std::uint64_t shared_bytes_;  // of a chunk that small pieces share
  Guarded<State> state_;
};

}  // namespace heddle::engine
