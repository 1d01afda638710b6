// Scratch: temporary memory of one thread that runs kernel tiles. A tile takes what it needs and
// gives nothing back; reset() before the next tile takes all of it at once, so that a step in
// steady state does not allocate. Owned by a pool thread or by a stream; one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace heddle::cpu {

class Scratch {
 public:
  // Uninitialised, 64-byte aligned, valid until reset().
  template <class T>
  T* take(std::size_t count) {
    return static_cast<T*>(take_bytes(count * sizeof(T)));
  }

  // What is taken during its life is given back at its end, for loops inside a tile.
  class Frame {
   public:
    explicit Frame(Scratch& scratch)
        : scratch_(scratch), blocks_(scratch.blocks_.size()), used_(scratch.used_) {}
    ~Frame() {
      if (scratch_.blocks_.size() == blocks_) scratch_.used_ = used_;
    }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

   private:
    Scratch& scratch_;
    std::size_t blocks_, used_;
  };

  // Invalidates everything taken. Several blocks become one, large enough for what was taken in
  // all.
  void reset() {
    if (blocks_.size() > 1) {
      std::size_t total = 0;
      for (const Block& block : blocks_) total += block.size;
      blocks_.clear();
      add_block(total);
    }
    used_ = 0;
  }

 private:
  static constexpr std::size_t kAlignment = 64;
  static constexpr std::size_t kSmallestBlock = std::size_t{1} << 16;
  struct Free {
    void operator()(std::byte* memory) const {
      ::operator delete (memory, std::align_val_t{kAlignment});
    }
  };
  struct Block {
    std::unique_ptr<std::byte, Free> memory;
    std::size_t size;
  };

  void* take_bytes(std::size_t bytes) {
    bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (blocks_.empty() || blocks_.back().size - used_ < bytes) {
      add_block(bytes < kSmallestBlock ? kSmallestBlock : bytes);
      used_ = 0;
    }
    std::byte* result = blocks_.back().memory.get() + used_;
    used_ += bytes;
    return result;
  }

  void add_block(std::size_t bytes) {
    auto* memory = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment}));
    blocks_.push_back({std::unique_ptr<std::byte, Free>(memory), bytes});
  }

  std::vector<Block> blocks_;
  std::size_t used_ = 0;  // of the last block
};

}  // namespace heddle::cpu
