// Where the memory of host tensors comes from: the C library, or an allocator of the program that
// embeds the engine. One for the process. Everything here may be called by any thread.
#pragma once

#include <cstddef>

namespace heddle::engine {

// Both are called by any thread, several at once. `allocate` gives nullptr when it has nothing
// left.
struct HostAllocator {
  void* (*allocate)(void* user, std::size_t bytes,
                    std::size_t alignment) = nullptr;  // alignment: a power of two
  void (*free)(void* user, void* data, std::size_t bytes) = nullptr;
  void* user = nullptr;
};

// Whose memory this is: it goes back to the allocator it came from, however late.
struct HostPiece {
  void* data = nullptr;
  std::size_t bytes = 0;
  const HostAllocator* from = nullptr;
};

// Whole cache lines. Throws out_of_memory.
HostPiece allocate_host(std::size_t bytes);
void free_host(const HostPiece& piece) noexcept;

// From now on memory comes from `allocator`; the result is the number to take it back with.
unsigned long long use_host_allocator(const HostAllocator& allocator);
// The C library again, unless another allocator has been put in the place meanwhile.
void forget_host_allocator(unsigned long long number);

}  // namespace heddle::engine
