// Memory for RapidJSON, which does not look at what its allocator gives: where there is none, its
// own writes to address zero.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace heddle::engine {

// RapidJSON's concept Allocator, over malloc(). Throws std::bad_alloc when there is no memory; a
// block that was to grow is then as it was. From any thread.
class JsonMemory {
 public:
  static constexpr bool kNeedFree = true;

  void* Malloc(std::size_t size) { return size == 0 ? nullptr : checked(std::malloc(size)); }

  void* Realloc(void* block, std::size_t, std::size_t size) {
    if (size != 0) return checked(std::realloc(block, size));
    std::free(block);
    return nullptr;
  }

  static void Free(void* block) noexcept { std::free(block); }

 private:
  static void* checked(void* block) {
    if (block == nullptr) throw std::bad_alloc();
    return block;
  }
};

}  // namespace heddle::engine
